// The screen of a server, by noVNC. `path` in the page's address says which WebSocket to open, with its token.
import RFB from "./novnc/core/rfb.js";

const asked = new URLSearchParams(window.location.search);
const status = document.getElementById("status");
const keys = document.getElementById("keys");

function address() {
  const scheme = window.location.protocol === "https:" ? "wss" : "ws";
  const path = asked.get("path") ?? `?token=${asked.get("token") ?? ""}`;
  return `${scheme}://${window.location.host}/${path.replace(/^\//, "")}`;
}

const screen = new RFB(document.getElementById("screen"), address(), {});
screen.scaleViewport = true;
screen.viewOnly = asked.get("view_only") === "true";

screen.addEventListener("connect", () => {
  status.textContent = "Connected";
  document.body.dataset.state = "connected";
  keys.disabled = screen.viewOnly;
  screen.focus();
});
screen.addEventListener("desktopname", (event) => {
  document.title = `${event.detail.name} (noVNC)`;
});
screen.addEventListener("disconnect", (event) => {
  document.body.dataset.state = "disconnected";
  keys.disabled = true;
  status.textContent = event.detail.clean
    ? "The console was closed. Ask for a new address to open it again."
    : "There is no console here: its address has expired, or the server is not running.";
});
screen.addEventListener("securityfailure", (event) => {
  status.textContent = `The console refused: ${event.detail.reason ?? "no reason"}`;
});
keys.addEventListener("click", () => screen.sendCtrlAltDel());
