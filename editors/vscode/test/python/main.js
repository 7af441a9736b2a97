// In place of the Python extension: the selected interpreter is the program of this name, once it exists.

const { existsSync } = require('node:fs');

exports.activate = () => {
  const program = process.env.SELECTED_PYTHON;
  const selected = () => (existsSync(program) ? { path: program } : undefined);
  const resolveEnvironment = async (environment) => ({ executable: { uri: { fsPath: environment.path } } });
  return { environments: { getActiveEnvironmentPath: selected, resolveEnvironment } };
};
