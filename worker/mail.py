"""One message by SMTP: over TLS, or with STARTTLS where the server offers it; a password never goes in the clear."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import unquote, urlsplit

_ANSWER_S = 20.0
_PORTS = {"smtp": 587, "smtps": 465}
_REFUSED_FOR_GOOD = 500  # and above: as 550, no such mailbox
_MOST_OF_AN_ANSWER = 2048


@dataclass(frozen=True)
class Letter:
    """What a mail says. `thread` is the same for all that is told of one alert: mail programs keep these together."""

    subject: str
    text: str
    thread: str


@dataclass(frozen=True)
class MailAnswer:
    """What the server said at last; `code` is None where it did not answer."""

    accepted: bool
    code: int | None
    text: str
    refused_for_good: bool = False


def send_mail(server: str, sender: str, to: str, letter: Letter, *, message_id: str, now: datetime) -> MailAnswer:
    """Hand one letter to the server.

    Args:
        server: `smtp://[USER:PASSWORD@]HOST[:587]`, or `smtps://` for TLS from the first byte.
        message_id: the same at each try, so that a letter that came twice is known as one.
    """
    taken = False
    try:
        with _connected(server) as smtp:
            smtp.send_message(_message(sender, to, letter, message_id, now))
            taken = True
    except (smtplib.SMTPException, OSError) as error:  # ssl's errors are OSErrors
        if not taken:  # else it is no matter how they parted
            return _refusal(error, to)
    return MailAnswer(True, 250, "The mail server took it.")


def _refusal(error: Exception, to: str) -> MailAnswer:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, said = error.recipients[to]
        return MailAnswer(False, code, _text(said), refused_for_good=code >= _REFUSED_FOR_GOOD)
    if isinstance(error, smtplib.SMTPResponseException):
        return MailAnswer(False, error.smtp_code, _text(error.smtp_error))
    return MailAnswer(False, None, f"No answer: {type(error).__name__}: {error}")


@contextmanager
def _connected(server: str) -> Iterator[smtplib.SMTP]:
    parts = urlsplit(server)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    context = ssl.create_default_context()
    if parts.scheme == "smtps":
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=_ANSWER_S, context=context)
    else:
        smtp = smtplib.SMTP(host, port, timeout=_ANSWER_S)
    with smtp:
        smtp.ehlo()
        if parts.scheme == "smtp" and smtp.has_extn("starttls"):
            smtp.starttls(context=context)
            smtp.ehlo()
        elif parts.scheme == "smtp" and parts.username:
            way_out = "use smtps://, or leave user and password out of FORECURVE_SMTP_URL"
            raise smtplib.SMTPException(f"{host} offers no STARTTLS, and no password is sent in the clear; {way_out}")
        if parts.username:
            smtp.login(unquote(parts.username), unquote(parts.password or ""))
        yield smtp


def _message(sender: str, to: str, letter: Letter, message_id: str, now: datetime) -> EmailMessage:
    domain = sender.rpartition("@")[2]
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, to, " ".join(letter.subject.split())
    message["Date"] = format_datetime(now)
    message["Message-ID"] = f"<{message_id}@{domain}>"
    message["References"] = f"<{letter.thread}@{domain}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: nobody's holiday answers it
    message.set_content(letter.text)
    return message


def _text(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return text[:_MOST_OF_AN_ANSWER]
