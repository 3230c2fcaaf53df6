"""Horizon as somebody with a mouse uses it, who notices every message of an error."""

from __future__ import annotations

import json
from pathlib import Path

from tests.lab.keystone.service import Person
from tests.support.browser import Browser, BrowserError
from tests.support.processes import NotReadyError, wait_until

PATIENCE = 120.0

_AT_REST = """
if (document.readyState !== "complete" || !window.jQuery || !window.angular) return false;
const app = angular.element(document.body).injector();
return jQuery.active === 0 && (!app || app.get("$http").pendingRequests.length === 0);
"""
_COMPLAINTS = """
const shown = [...document.querySelectorAll(".alert-danger, .alert-warning, .alert-error, .has-error")];
return shown.filter(each => each.offsetParent !== null).map(each => each.innerText.trim());
"""
_TEXT = "return document.querySelector('#main_content, body').innerText"
_WRONG = ("Something went wrong", "You are not authorized", "You don't have permission", "Page Not Found")
_SUBMIT = (
    "//div[contains(@class, 'modal-footer')]"
    "//*[contains(@class, 'btn-primary') or contains(@class, 'btn-danger')]"
)
_NO_DIALOGUE = "return !document.querySelector('.modal-dialog')"


class Dashboard:
    """After each step: no message of an error, and no page that says that something went wrong."""

    def __init__(self, browser: Browser, url: str, pictures: Path) -> None:
        self.browser = browser
        self.url = url
        self._pictures = pictures
        self._taken = 0

    def sign_in(self, person: Person) -> None:
        self.browser.go(f"{self.url}/auth/login/")
        self.fill("#id_username", person.name)
        self.fill("#id_password", person.password)
        self.press("#loginBtn")
        wait_until(lambda: "/auth/login" not in self._address(), "the first page", PATIENCE)
        self.check("sign in")

    def sign_out(self) -> None:
        self.browser.run("document.querySelector('form[action=\"/auth/logout/\"]').submit()")
        wait_until(lambda: "/auth/login" in self._address(), "the end of the session", PATIENCE)

    # ------------------------------------------------------------ pages

    def open(self, path: str) -> str:
        """What the page says."""
        self.browser.go(f"{self.url}{path}")
        return self.check(path)

    def check(self, what: str) -> str:
        """The page's text once it has come to rest, if nothing is wrong with it."""
        wait_until(lambda: self._holds(_AT_REST), f"{what}: the page to come to rest", PATIENCE)
        text = str(self.browser.run(_TEXT))
        complaints = self.browser.run(_COMPLAINTS)
        self.take_picture(what)
        assert not complaints, f"{what}: {complaints}"
        for sentence in _WRONG:
            assert sentence not in text, f"{what}: {text[:500]}"
        return text

    def take_picture(self, what: str) -> None:
        self._taken += 1
        name = "".join(letter if letter.isalnum() else "-" for letter in what).strip("-")[:60]
        (self._pictures / f"{self._taken:03}-{name}.png").write_bytes(self.browser.screenshot())

    def await_frame(self, selector: str, word: str) -> None:
        """Until a page within the page says this word."""
        text = f"return document.querySelector({json.dumps(selector)}).contentDocument.body.innerText"

        def said() -> bool:
            return word in str(self.browser.run(f"try {{ {text} }} catch (error) {{ return '' }}"))

        try:
            wait_until(said, f"{selector}: {word}", PATIENCE)
        finally:
            self.take_picture(selector)

    # ------------------------------------------------------------ hands

    def press(self, selector: str) -> None:
        """Once it can be clicked on: dialogues take a moment to slide in."""
        said = ""

        def pressed() -> bool:
            nonlocal said
            try:
                self.browser.click(selector)
            except BrowserError as error:
                said = str(error)
                return False
            return True

        try:
            wait_until(pressed, f"{selector} to be there", PATIENCE)
        except NotReadyError as error:
            self.take_picture(f"no {selector}")
            raise AssertionError(f"{error}: {said}") from error

    def fill(self, selector: str, text: str) -> None:
        self.press(selector)
        self.browser.run(f"document.querySelector({json.dumps(selector)}).value = ''")
        self.browser.type(selector, text)

    def choose(self, name: str, text: str) -> None:
        """An entry of a list of choices in a dialogue, by how it begins."""
        self.browser.run(
            f"const list = document.querySelector('.modal [name={name}]');"
            f"const entry = [...list.options].find(each => each.text.startsWith({json.dumps(text)}));"
            "list.value = entry.value; list.dispatchEvent(new Event('change', {bubbles: true}))"
        )

    def submit(self, what: str) -> None:
        """What the dialogue asks."""
        self.press(_SUBMIT)
        wait_until(lambda: self._holds(_NO_DIALOGUE), f"{what}: the dialogue to close", PATIENCE)
        self.check(what)

    # ------------------------------------------------------------ tables

    def await_row(self, path: str, name: str, *words: str) -> None:
        """Until the row of this name says all of these words, and its table nothing bad."""

        def there() -> bool:
            self.open(path)
            row = self.row_text(name)
            assert "Error" not in row.split(), row
            return all(word in row for word in words)

        wait_until(there, f"{name}: {words}", PATIENCE)

    def await_no_row(self, path: str, name: str) -> None:
        def gone() -> bool:
            self.open(path)
            return not self.row_text(name)

        wait_until(gone, f"{name} to be gone", PATIENCE)

    def act(self, row: str, action: str, /, **fields: str) -> None:
        """Choose an action of a row; then confirm it, or fill in its form."""
        kind = self.start(row, action)
        if "ajax-modal" in kind:
            self.fill_in(fields)
            self.submit(f"{action} {row}")
        elif "btn-danger" in kind:
            self.submit(f"{action} {row}")
        else:
            self.check(f"{action} {row}")

    def start(self, name: str, action: str) -> str:
        """Choose an action of a row, from its menu if it is there; what kind of a button it has."""
        row = self.browser.run(f"const row = {_row(name)}; return row ? row.id : ''")
        assert row, f"there is no row of {name}"
        button = f"[id={json.dumps(row)}] [id$='__action_{action}']"
        kind = self.browser.run(
            f"const it = document.querySelector({json.dumps(button)}); if (!it) return 'absent';"
            "return `${it.tagName} ${it.className} ${it.offsetParent ? '' : 'hidden'}`"
        )
        assert kind != "absent", f"{name} offers no {action}"
        if "hidden" in kind:
            self.press(f"[id={json.dumps(row)}] .dropdown-toggle")
        self.press(button)
        return str(kind)

    def act_on_table(self, button: str, /, **fields: str) -> None:
        self.press(f"#{button}")
        self.fill_in(fields)
        self.submit(button)

    def fill_in(self, fields: dict[str, str]) -> None:
        """The form of a dialogue; a field that has choices is chosen from."""
        wait_until(lambda: self._holds("return !!document.querySelector('.modal form')"), "a form", PATIENCE)
        for name, value in fields.items():
            field = f".modal [name={name}]"
            if self.browser.run(f"return document.querySelector({json.dumps(field)}).tagName") == "SELECT":
                self.choose(name, value)
            else:
                self.fill(field, value)

    def row_text(self, name: str) -> str:
        return str(self.browser.run(f"const row = {_row(name)}; return row ? row.innerText : ''"))

    def _holds(self, script: str) -> bool:
        try:
            return bool(self.browser.run(script))
        except BrowserError:  # the page went away in the meantime
            return False

    def _address(self) -> str:
        return str(self.browser.run("return location.pathname"))


def _row(name: str) -> str:
    """The first that is on the tab to be seen."""
    fits = f"row => row.offsetParent && row.innerText.includes({json.dumps(name)})"
    return f"[...document.querySelectorAll('tbody tr')].find({fits})"
