"""What can be done about findings: mend one, hide one, mend all that is safe to mend. Never as formatting."""

from __future__ import annotations

from dataclasses import replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from ctxlint.editor.diagnostics import diagnostic_at
from ctxlint.fixes.apply import mend
from ctxlint.fixes.edit import Applicability, Edit
from ctxlint.rules import rule_names
from ctxlint.suppression.add import NOT_TO_HIDE, noqa_edits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ctxlint.diagnostic import Diagnostic
    from ctxlint.editor.checking import Checked
    from ctxlint.editor.session import Session
    from ctxlint.files.source import Source

FIX_ALL = "source.fixAll"
OWN_FIX_ALL = "source.fixAll.ctxlint"
_MARKS = {Applicability.UNSAFE: " (unsafe)", Applicability.DISPLAY: " (suggestion)"}


def register(session: Session) -> None:
    """Add the features."""
    options = lsp.CodeActionOptions(
        code_action_kinds=[lsp.CodeActionKind.QuickFix, OWN_FIX_ALL, FIX_ALL], resolve_provider=True
    )

    @session.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, options)
    async def offer(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri, only = params.text_document.uri, params.context.only
        checked = await session.checked(uri)
        if checked is None:
            return []
        found: list[lsp.CodeAction] = []
        if _wanted(lsp.CodeActionKind.QuickFix.value, only):
            found += _quick_fixes(session, checked, params.range)
        kind = _fix_all_kind(only)
        if kind is not None and any(_is_safe(each) for each in checked.result.diagnostics):
            action = lsp.CodeAction("ctxlint: fix all that is safe to fix", kind, data={"uri": uri})
            found.append(action if _resolves(session) else await _with_all_fixes(session, action))
        return found

    @session.feature(lsp.CODE_ACTION_RESOLVE)
    async def resolve(action: lsp.CodeAction) -> lsp.CodeAction:
        return action if action.edit is not None else await _with_all_fixes(session, action)


# One finding


def _quick_fixes(session: Session, checked: Checked, where: lsp.Range) -> Iterator[lsp.CodeAction]:
    """The fixes of the findings in a stretch, and after them what hides each."""
    places = session.places(checked)
    start, end = sorted((places.offset(where.start), places.offset(where.end)))
    source = checked.source
    there = [
        each
        for each in checked.diagnostics
        if source.offset(each.span.start) <= end and start <= source.offset(each.span.end)
    ]
    for each in there:
        if each.fix is not None and each.fix.edits:
            yield lsp.CodeAction(
                f"ctxlint ({each.code}): {each.fix.message}{_MARKS.get(each.fix.applicability, '')}",
                lsp.CodeActionKind.QuickFix,
                diagnostics=[diagnostic_at(each, places, checked.document.uri)],
                is_preferred=True if each.fix.applicability is Applicability.SAFE else None,
                edit=workspace_edit(session, checked, each.fix.edits),
            )
    for each in there:
        if each.code not in NOT_TO_HIDE:
            yield lsp.CodeAction(
                f"ctxlint ({each.code}): Disable for this line",
                lsp.CodeActionKind.QuickFix,
                diagnostics=[diagnostic_at(each, places, checked.document.uri)],
                edit=workspace_edit(session, checked, tuple(noqa_edits(source, [each], rule_names()))),
            )


def workspace_edit(session: Session, checked: Checked, edits: Iterable[Edit]) -> lsp.WorkspaceEdit:
    """Edits of one document, for its very version where the client can tell."""
    places = session.places(checked)
    changes = [places.text_edit(edit) for edit in edits]
    document = checked.document
    workspace = session.client_capabilities.workspace
    if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
        identifier = lsp.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)
        return lsp.WorkspaceEdit(document_changes=[lsp.TextDocumentEdit(identifier, changes)])
    return lsp.WorkspaceEdit(changes={document.uri: changes})


# All that is safe


async def _with_all_fixes(session: Session, action: lsp.CodeAction) -> lsp.CodeAction:
    """The action with its edit; without one where the document has gone meanwhile."""
    data: Any = action.data
    uri = data.get("uri") if isinstance(data, dict) else None
    if isinstance(uri, str):
        action.edit = await session.on_worker(lambda: _all_fixes(session, uri))
    return action


def _all_fixes(session: Session, uri: str) -> lsp.WorkspaceEdit | None:
    checked = session.check_now(uri)
    if checked is None:
        return None
    settings = replace(checked.result.settings, fix=True, unsafe_fixes=False)
    result = mend(checked.result, settings, lambda source: session.checker.result(source, settings))
    if result.before is None or result.source is None:
        return lsp.WorkspaceEdit(changes={})
    return workspace_edit(session, checked, line_edits(result.before, result.source))


def line_edits(before: Source, after: Source) -> Iterator[Edit]:
    """The edits, in whole lines, that make one text the other: what stays keeps its marks and the cursor."""
    old, new = _lines(before), _lines(after)
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            start = _offset_of_line(before, old_start)
            yield Edit(start, _offset_of_line(before, old_end), "".join(new[new_start:new_end]))


def _lines(source: Source) -> list[str]:
    return [source.lines(number, number) for number in range(1, source.line_count + 1)]


def _offset_of_line(source: Source, index: int) -> int:
    return source.line_starts[index] if index < source.line_count else len(source.text)


def _is_safe(diagnostic: Diagnostic) -> bool:
    fix = diagnostic.fix
    return fix is not None and bool(fix.edits) and fix.applicability is Applicability.SAFE


def _resolves(session: Session) -> bool:
    """Whether the client asks for the edit when the action is chosen."""
    documents = session.client_capabilities.text_document
    support = documents.code_action.resolve_support if documents and documents.code_action else None
    return support is not None and "edit" in support.properties


def _wanted(kind: str, only: Sequence[str | lsp.CodeActionKind] | None) -> bool:
    """Whether the client asked for actions of this kind, or for no kind in particular."""
    if not only:
        return True
    asked = [str(getattr(each, "value", each)) for each in only]
    return any(kind == each or kind.startswith(f"{each}.") for each in asked)


def _fix_all_kind(only: Sequence[str | lsp.CodeActionKind] | None) -> str | None:
    """The kind that fixing everything is offered as: once only, and under the very name that was asked for."""
    asked = [str(getattr(each, "value", each)) for each in only or ()]
    if FIX_ALL in asked and OWN_FIX_ALL not in asked:
        return FIX_ALL
    return OWN_FIX_ALL if _wanted(OWN_FIX_ALL, only) else None
