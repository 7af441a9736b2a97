"""CTX902: a file that cannot be read or written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.model.function import SourceFile
from ctxlint.rules.base import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings


class IoError(Rule[SourceFile]):
    """
    ## What it does
    Reports a file that is missing, that may not be read, or that is not the text or the notebook it says it is; and,
    with `--fix`, one that cannot be written. A file of more than 100 MB is not read, and code of more than 2,000,000
    characters is not analysed; nor is a file that spells `autograd` in characters or an encoding that hide the word.

    `--fix` also leaves a file alone that was changed after it was read, that lies outside of the project and is
    reached through a link in it, that has several hard links, or whose extended attributes cannot be kept.

    ## Why is this bad?
    What cannot be read is not checked, so silence about it means nothing. The other files are checked as always. The
    finding is there whatever `--select` says; `--ignore CTX902` turns it off.

    ## Example
    A misspelt name on the command line, or a file in Latin-1 that does not say so:

    ```console
    $ ctxlint modle.py
    ```

    ## Use instead
    The right name; UTF-8, or a first line such as `# -*- coding: latin-1 -*-`.

    ```console
    $ ctxlint model.py
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    A file that does not hold the words `autograd` and `Function` is never decoded, so neither its encoding is checked nor,
    of a notebook, its JSON, nor the length of its code.

    ## References
    - [PEP 263: Defining Python Source Code Encodings](https://peps.python.org/pep-0263/)
    """

    code = "CTX902"
    name = "io-error"
    subject = SourceFile

    def check(self, file: SourceFile, settings: Settings) -> Iterator[Finding]:
        """Nothing: whoever has a SourceFile could read the file. The pipeline reports those that it could not."""
        return iter(())
