"""Prompts that a shell, a terminal or a decoder would change if it could (R-4)."""

from __future__ import annotations

PROMPTS = {
    "quotes": b"say \"hi\" and 'ho' and \\\"both\\'",
    "substitution": b"$(touch pwned) `touch pwned` ${HOME} $((1+1)) ~ !!",
    "newlines": b"\n\nfirst\n\n  second\r\nthird\n\n\n",
    "leading-dash": b"--dangerous -n -e",
    "option": b"--help",
    "echo-traps": b"-n \\c \\n \\0101 %s %d %%",
    "glob": b"* ? [a-z] {a,b} > file < file | & ; # not a comment",
    "emoji": "\U0001f469\u200d\U0001f4bb naïve 漢字 e\u0301".encode(),
    "not-utf8": b"latin \xe9 and \xff\xfe\x80 bytes",
    "control": b"tab\t bell\x07 escape\x1b[31m",
    "space": b" ",
    "end-of-heredoc": b"END\nEOF\n",
}
