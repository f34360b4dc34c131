"""The `http` settings of a definition, read with every fault at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from fairlane import secrets
from fairlane.core import json
from fairlane.core.json import pointer_to
from fairlane.errors import DefinitionInvalid, Fault, PayloadInvalid
from fairlane.executors.http import names
from fairlane.executors.http.body import BodyTemplate
from fairlane.executors.http.headers import HeaderTemplate, fault_in_name
from fairlane.executors.http.refusal import CallRefused
from fairlane.executors.http.url import UrlInvalid, UrlTemplate
from fairlane.executors.template import TemplateInvalid

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
KNOWN = (
    "method",
    "url",
    "headers",
    "body",
    "sign_with",
    "allow_private",
    "max_response_bytes",
    "connect_timeout_seconds",
)
MEBIBYTE = 1_048_576


@dataclass(frozen=True, kw_only=True)
class HttpSettings:
    """How a definition's calls are made."""

    method: str
    url: UrlTemplate
    headers: tuple[HeaderTemplate, ...] = ()
    body: BodyTemplate | None = None  # None: the payload, where the method has a body
    sign_with: tuple[str, ...] = ()
    allow_private: bool = False
    max_response_bytes: int = MEBIBYTE
    connect_timeout_seconds: float = 10

    @property
    def sends_payload(self) -> bool:
        return self.body is None and self.method in ("POST", "PUT", "PATCH")

    @classmethod
    def read(cls, settings: Any, arg_schema: Mapping[str, Any]) -> Self:
        reader = _Reader(settings, arg_schema)
        read = reader.read()
        if reader.faults:
            told = "; ".join(str(fault) for fault in reader.faults)
            raise DefinitionInvalid(f"the http settings are refused: {told}", reader.faults)
        return cls(**read)


class _Reader:
    def __init__(self, settings: Any, arg_schema: Mapping[str, Any]) -> None:
        self.faults: list[Fault] = []
        self._settings = settings
        self._schema = arg_schema

    def read(self) -> dict[str, Any]:
        if not isinstance(self._settings, Mapping):
            self._fault("/http", "an object with at least a url")
            return {}
        for key in self._settings:
            if key not in KNOWN:
                self._fault(pointer_to("/http", key), f"unknown; there are {', '.join(KNOWN)}")
        method = self._method()
        allow_private = self._boolean("allow_private")
        return {
            "method": method,
            "url": self._url(),
            "headers": self._headers(),
            "body": self._body(method),
            "sign_with": self._sign_with(),
            "allow_private": allow_private,
            "max_response_bytes": self._number("max_response_bytes", MEBIBYTE, 1, 16 * MEBIBYTE),
            "connect_timeout_seconds": self._number("connect_timeout_seconds", 10, 1, 300),
        }

    def _fault(self, pointer: str, message: str) -> None:
        self.faults.append(Fault(pointer, message))

    def _method(self) -> str:
        method = self._settings.get("method", "POST")
        if not isinstance(method, str) or method.upper() not in METHODS:
            self._fault("/http/method", f"must be one of {', '.join(METHODS)}")
            return "POST"
        return method.upper()

    def _url(self) -> UrlTemplate | None:
        text = self._settings.get("url")
        if not isinstance(text, str):
            self._fault("/http/url", "must be a URL like https://app.example/solve")
            return None
        try:
            url = UrlTemplate(text)
        except UrlInvalid as error:
            for fault in error.faults:
                self._fault("/http/url", fault)
            return None
        self._check_names(url.names, "/http/url")
        # Whether its address may be reached is for the moment of the call to say: one rule, and one
        # place for it, whether the address is written out or hides behind a name.
        return url

    def _headers(self) -> tuple[HeaderTemplate, ...]:
        given = self._settings.get("headers") or {}
        if not isinstance(given, Mapping):
            self._fault("/http/headers", "must be an object of names and values")
            return ()
        headers = []
        seen: set[str] = set()
        for name, text in given.items():
            pointer = pointer_to("/http/headers", name)
            if not isinstance(name, str) or not isinstance(text, str):
                self._fault(pointer, "must be a text")
                continue
            if fault := fault_in_name(name):
                self._fault(pointer, fault)
            if name.lower() in seen:
                self._fault(pointer, "is there twice")
            seen.add(name.lower())
            try:
                header = HeaderTemplate(name, text)
            except (TemplateInvalid, CallRefused) as error:
                self._fault(pointer, str(error))
                continue
            self._check_names(header.names, pointer)
            for secret in header.secrets:
                if fault := secrets.fault_in(secret):
                    self._fault(pointer, fault)
            headers.append(header)
        return tuple(headers)

    def _body(self, method: str) -> BodyTemplate | None:
        value = self._settings.get("body")
        if value is None:
            return None
        if method == "GET":
            self._fault("/http/body", "a GET has no body; use the query, or another method")
        try:
            json.check(value, "the body")
        except PayloadInvalid as error:
            self._fault("/http/body", str(error))
            return None
        body = BodyTemplate(value, "/http/body", self._schema)
        self.faults += body.faults
        return body

    def _sign_with(self) -> tuple[str, ...]:
        given = self._settings.get("sign_with")
        if given is None:
            return ()
        several = isinstance(given, list)
        found = given if several else [given]
        if not found:
            self._fault("/http/sign_with", "must name a secret, or several")
        for index, name in enumerate(found):
            if fault := secrets.fault_in(name):
                self._fault(f"/http/sign_with/{index}" if several else "/http/sign_with", fault)
        return tuple(found)

    def _boolean(self, key: str) -> bool:
        value = self._settings.get(key, False)
        if not isinstance(value, bool):
            self._fault(f"/http/{key}", "must be true or false")
            return False
        return value

    def _number(self, key: str, default: int, least: int, most: int) -> int:
        value = self._settings.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self._fault(f"/http/{key}", f"must be a whole number from {least} to {most}")
            return default
        return value

    def _check_names(self, found: list[tuple[str, ...]], pointer: str) -> None:
        for name in found:
            if fault := names.fault_in(name, self._schema):
                self._fault(pointer, fault)
