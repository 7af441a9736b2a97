"""Code actions for findings: fix one, suppress one, apply all safe fixes. Never registered as formatting."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from ctxlint.editor.diagnostics import diagnostic_at
from ctxlint.editor.documents import NotebookDocument
from ctxlint.fix import Applicability, is_safe
from ctxlint.rule_names import rule_names
from ctxlint.suppression.add import NOT_TO_HIDE, noqa_edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.editor.checked import Checked
    from ctxlint.editor.session import Session

FIX_ALL = "source.fixAll"
OWN_FIX_ALL = "source.fixAll.ctxlint"
WHOLE_NOTEBOOK = "notebook."
APPLY_EDIT = "ctxlint.applyEdit"
_FIX_ALL_KINDS = (OWN_FIX_ALL, FIX_ALL, WHOLE_NOTEBOOK + OWN_FIX_ALL, WHOLE_NOTEBOOK + FIX_ALL)
_MARKS = {Applicability.UNSAFE: " (unsafe)", Applicability.DISPLAY: " (suggestion)"}


def register(session: Session) -> None:
    """Add the features."""
    options = lsp.CodeActionOptions(
        code_action_kinds=[lsp.CodeActionKind.QuickFix, *_FIX_ALL_KINDS], resolve_provider=True
    )

    @session.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, options)
    async def offer(params: lsp.CodeActionParams) -> list[lsp.CodeAction] | list[lsp.Command]:
        found = await actions(params)
        return found if takes_actions(session) else list(_as_commands(session, found))

    async def actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        only = [str(getattr(each, "value", each)) for each in params.context.only or ()]
        checked = await session.checked(uri)
        if checked is None:
            return []
        found: list[lsp.CodeAction] = []
        if _wanted("quickfix", only):
            found += _quick_fixes(session, checked, uri, params)
        settings = session.settings.client_settings_for(checked.document.path)
        kind = _fix_all_kind(only) if settings.fix_all else None
        if kind is not None and any(is_safe(each.fix) for each in checked.result.diagnostics):
            action = lsp.CodeAction("ctxlint: Apply all safe fixes", kind, data={"uri": uri, "kind": kind})
            found.append(action if _resolves(session) else await _with_all_fixes(session, action))
        return found

    @session.feature(lsp.CODE_ACTION_RESOLVE)
    async def resolve(action: lsp.CodeAction) -> lsp.CodeAction:
        return action if action.edit is not None else await _with_all_fixes(session, action)


# Clients that only know commands


def takes_actions(session: Session) -> bool:
    """Whether the client supports code actions as answers, or does not declare what it supports."""
    documents = session.client_capabilities.text_document
    support = documents.code_action if documents is not None else None
    return support is None or bool(support.code_action_literal_support or support.resolve_support)


def register_command(session: Session) -> None:
    """Add the command that applies an edit. Only for clients without code actions, as the others would list it."""

    @session.command(APPLY_EDIT)
    def apply(edit: lsp.WorkspaceEdit) -> None:
        session.workspace_apply_edit(lsp.ApplyWorkspaceEditParams(edit))


def _as_commands(session: Session, found: Iterable[lsp.CodeAction]) -> Iterator[lsp.Command]:
    """Actions as commands; none if the client cannot apply the edit that the server sends then."""
    workspace = session.client_capabilities.workspace
    for each in found if workspace is not None and workspace.apply_edit else ():
        yield lsp.Command(each.title, APPLY_EDIT, arguments=[_written(session, each.edit)])


# The first request

_SECONDS_BETWEEN_STEPS = 0.25
_RANGE = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
_REQUESTS = {
    lsp.TEXT_DOCUMENT_CODE_ACTION: {
        "textDocument": {"uri": ""},
        "range": _RANGE,
        "context": {"diagnostics": [], "only": [FIX_ALL]},
    },
    lsp.CODE_ACTION_RESOLVE: {
        "title": "",
        "kind": FIX_ALL,
        "data": {},
        "edit": {"changes": {"": [{"range": _RANGE, "newText": ""}]}},
    },
}


async def prepare(session: Session) -> None:
    """Read and write what a client sends at a save: compiling the types takes longer than most checks.

    Twice, because each type that is met first makes the converter forget the others; after the first findings, which
    would wait for it.
    """
    for method, params in (*_REQUESTS.items(), *_REQUESTS.items()):
        await asyncio.sleep(_SECONDS_BETWEEN_STEPS)
        await session.after_check()
        message = session.protocol.structure_message({"jsonrpc": "2.0", "id": 0, "method": method, "params": params})
        await asyncio.sleep(_SECONDS_BETWEEN_STEPS)
        json.dumps(message, default=partial(_written, session))


def _written(session: Session, message: object) -> object:
    converter: Any = session.protocol._converter  # noqa: SLF001
    return converter.unstructure(message)


# One finding


def _quick_fixes(
    session: Session, checked: Checked, uri: str, params: lsp.CodeActionParams
) -> Iterator[lsp.CodeAction]:
    """The fixes of the findings in a range, or on the line of the cursor, followed by suppressions."""
    view, source, where = session.view(checked), checked.source, params.range
    settings = session.settings.client_settings_for(checked.document.path)
    ends = (view.offset(uri, where.start), view.offset(uri, where.end))
    if ends[0] is None or ends[1] is None:
        return
    start, end = min(ends[0], ends[1]), max(ends[0], ends[1])
    if start == end:
        line = source.position(start).line
        start, end = source.line_starts[line - 1], source.line_starts[line - 1] + len(source.line(line))
    there = [
        (each, [diagnostic_at(each, view.location(each.span).range, view)])
        for each in checked.diagnostics
        if source.offset(each.span.start) <= end and start <= source.offset(each.span.end)
    ]
    for each, shown in there:
        if each.fix is not None and each.fix.edits and settings.quick_fixes:
            yield lsp.CodeAction(
                f"ctxlint ({each.code}): {each.fix.message}{_MARKS.get(each.fix.applicability, '')}",
                lsp.CodeActionKind.QuickFix,
                diagnostics=shown,
                is_preferred=True if each.fix.applicability is Applicability.SAFE else None,
                edit=_workspace_edit(session, view.edits(sorted(each.fix.edits))),
            )
    for each, shown in there:
        if each.code not in NOT_TO_HIDE and settings.noqa_actions:
            yield lsp.CodeAction(
                f"ctxlint ({each.code}): Disable for this line",
                lsp.CodeActionKind.QuickFix,
                diagnostics=shown,
                edit=_workspace_edit(session, view.edits(list(noqa_edits(source, [each], rule_names())))),
            )


def _workspace_edit(session: Session, edits: Iterable[lsp.TextDocumentEdit]) -> lsp.WorkspaceEdit:
    """Edits with document versions, if the client supports that."""
    workspace = session.client_capabilities.workspace
    if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
        return lsp.WorkspaceEdit(document_changes=list(edits))
    changes: dict[str, list[lsp.TextEdit]] = {}
    for each in edits:
        plain = [edit for edit in each.edits if isinstance(edit, lsp.TextEdit)]
        changes.setdefault(each.text_document.uri, []).extend(plain)
    return lsp.WorkspaceEdit(changes=changes)


# All safe fixes


async def _with_all_fixes(session: Session, action: lsp.CodeAction) -> lsp.CodeAction:
    """The action with its edit; without one if the document was closed meanwhile."""
    data: Any = action.data
    uri = data.get("uri") if isinstance(data, dict) else None
    if isinstance(uri, str):
        whole = str(data.get("kind")).startswith(WHOLE_NOTEBOOK)
        action.edit = await session.on_worker(lambda: _all_fixes(session, uri, whole_notebook=whole))
    return action


def _all_fixes(session: Session, uri: str, *, whole_notebook: bool) -> lsp.WorkspaceEdit | None:
    """The edit that applies all safe fixes: those of one cell, or of the whole notebook."""
    fixed = session.fixed_now(uri)
    if fixed is None:
        return None
    every = whole_notebook or not isinstance(fixed.checked.document, NotebookDocument)
    if not fixed.edits:
        return lsp.WorkspaceEdit(changes={})
    return _workspace_edit(session, (each for each in fixed.edits if every or each.text_document.uri == uri))


def _resolves(session: Session) -> bool:
    """Whether the client requests the edit only when the action is chosen."""
    documents = session.client_capabilities.text_document
    support = documents.code_action.resolve_support if documents and documents.code_action else None
    return support is not None and "edit" in support.properties


def _wanted(kind: str, only: Sequence[str]) -> bool:
    """Whether the client requested actions of this kind, or of no kind in particular."""
    return not only or any(each in ("", kind) or kind.startswith(f"{each}.") for each in only)


def _fix_all_kind(only: Sequence[str]) -> str | None:
    """The kind of the action that fixes everything: offered only once, under the requested name."""
    for kind in _FIX_ALL_KINDS:
        if kind in only:
            return kind
    return next((kind for kind in _FIX_ALL_KINDS if _wanted(kind, only)), None)
