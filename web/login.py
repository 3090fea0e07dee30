"""Logging in and out: a one-time link or a pasted token becomes a browser session in an HttpOnly cookie."""

from __future__ import annotations

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import update
from sqlalchemy.orm import Session

from server.access.models import Token
from server.access.service import SESSION_LIFETIME, authenticate, digest, open_session, redeem_login_code
from server.dependencies import AppSettings, DbSession, Now, is_same_origin, session_cookie, session_secret
from server.errors import Forbidden, Problem, Unauthenticated
from server.heads import method_asked
from server.settings import Settings

from .page import render

router = APIRouter(include_in_schema=False)


@router.get("/login")
def login(
    request: Request, session: DbSession, settings: AppSettings, now: Now, code: str | None = None, next: str = "/"
) -> Response:
    """Redeem a login link; without a code, the page that says how to get one."""
    if _is_preview(request):
        return Response(status_code=HTTPStatus.NO_CONTENT)  # it must not use the link up
    refusal = None
    if code:
        try:
            secret = redeem_login_code(session, code, now)
            return _with_cookie(request, secret, SESSION_LIFETIME, next, settings)
        except Unauthenticated as refused:
            refusal = refused
    if _is_logged_in(request, session, now):  # who is in already needs no link: a used one leads on
        return RedirectResponse(local_path(next), HTTPStatus.SEE_OTHER)
    return _login_page(request, next, refusal)


@router.post("/login")
def login_with_token(
    request: Request,
    session: DbSession,
    settings: AppSettings,
    now: Now,
    token: Annotated[str, Form()],
    next: Annotated[str, Form()] = "/",
) -> Response:
    """Exchange a pasted API token for a session that ends with it; the token itself is not kept in the browser."""
    _refuse_other_sites(request)
    try:
        secret, lifetime = open_session(session, token.strip(), now)
    except Problem as refusal:
        return _login_page(request, next, refusal)
    return _with_cookie(request, secret, lifetime, next, settings)


@router.post("/logout")
def logout(request: Request, session: DbSession, now: Now) -> Response:
    """Revoke the session, forget the cookie."""
    _refuse_other_sites(request)
    secret = session_secret(request)
    if secret:
        mine = update(Token).where(Token.hash == digest(secret), Token.kind == "session")
        session.execute(mine.values(revoked_at=now))
    answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
    answer.delete_cookie(session_cookie(request.headers.get("host", "")))
    return answer


def local_path(path: str) -> str:
    """`path` if it stays on this site, else the start page."""
    stays = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if stays else "/"


def _login_page(request: Request, next: str, refusal: Problem | None) -> Response:
    status = refusal.status if refusal else HTTPStatus.OK
    return render(request, "login.html", status, next=local_path(next), refusal=refusal.detail if refusal else None)


def _with_cookie(request: Request, secret: str, lifetime: timedelta, next: str, settings: Settings) -> Response:
    answer = RedirectResponse(local_path(next), HTTPStatus.SEE_OTHER, headers={"Cache-Control": "no-store"})
    answer.set_cookie(
        session_cookie(request.headers.get("host", "")),
        secret,
        max_age=int(lifetime.total_seconds()),
        httponly=True,
        samesite="lax",
        secure="https" in (request.url.scheme, urlsplit(settings.public_url).scheme),
    )
    return answer


def _is_logged_in(request: Request, session: Session, now: datetime) -> bool:
    secret = session_secret(request)
    if not secret:
        return False
    try:
        return "read" in authenticate(session, secret, now).allowed
    except Unauthenticated:
        return False


def _is_preview(request: Request) -> bool:
    if method_asked(request.scope) == "HEAD":  # sent by programs that look at links in mail and chats
        return "code" in request.query_params
    return "prefetch" in request.headers.get("sec-purpose", "") or request.headers.get("purpose") == "prefetch"


def _refuse_other_sites(request: Request) -> None:
    if not is_same_origin(request):
        raise Forbidden("Logging in and out works from this site's own pages only.")
