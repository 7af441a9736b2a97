vim.lsp.config('ctxlint', {
  cmd = { 'ctxlint', 'server' },
  filetypes = { 'python' },
  root_markers = { 'ctxlint.toml', 'pyproject.toml', '.git' },
})
vim.lsp.enable('ctxlint')
vim.lsp.inlay_hint.enable(true)

-- Safe fixes on save.
vim.api.nvim_create_autocmd('BufWritePre', {
  pattern = { '*.py', '*.pyi' },
  callback = function(event)
    for _, client in ipairs(vim.lsp.get_clients({ bufnr = event.buf, name = 'ctxlint' })) do
      local params = vim.lsp.util.make_range_params(0, client.offset_encoding)
      params.context = { only = { 'source.fixAll.ctxlint' }, diagnostics = {} }
      local answer = client:request_sync('textDocument/codeAction', params, 2000, event.buf) or {}
      for _, action in ipairs(answer.result or {}) do
        if not action.edit then
          local resolved = client:request_sync('codeAction/resolve', action, 2000, event.buf) or {}
          action = resolved.result or action
        end
        if action.edit then
          vim.lsp.util.apply_workspace_edit(action.edit, client.offset_encoding)
        end
      end
    end
  end,
})
