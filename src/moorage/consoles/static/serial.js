// The serial line of a server: what it prints, and what is typed. Made for logins and boot messages: of the
// control sequences, only the ends of lines and the backspace mean something here.
const terminal = document.getElementById("terminal");
const status = document.getElementById("status");
const asked = new URLSearchParams(window.location.search);
const scheme = window.location.protocol === "https:" ? "wss" : "ws";
const folder = window.location.pathname.replace(/[^/]*$/, "");
const token = encodeURIComponent(asked.get("token") ?? "");
const line = new WebSocket(`${scheme}://${window.location.host}${folder}?token=${token}`, ["binary"]);
line.binaryType = "arraybuffer";

const MOST = 200_000; // letters that are kept
const NAMED = {
  Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", ArrowUp: "\x1b[A", ArrowDown: "\x1b[B",
  ArrowRight: "\x1b[C", ArrowLeft: "\x1b[D", Home: "\x1b[H", End: "\x1b[F", Delete: "\x1b[3~",
};
const decoder = new TextDecoder();
const encoder = new TextEncoder();

function print(text) {
  const plain = text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[@-Z\\-_]/g, "");
  let shown = terminal.textContent;
  for (const letter of plain) {
    if (letter === "\b") shown = shown.slice(0, -1);
    else if (letter !== "\r" && letter !== "\x07" && letter !== "\x00") shown += letter;
  }
  terminal.textContent = shown.slice(-MOST);
  terminal.scrollTop = terminal.scrollHeight;
}

function send(text) {
  if (line.readyState === WebSocket.OPEN) line.send(encoder.encode(text));
}

line.addEventListener("open", () => {
  status.textContent = "Connected";
  document.body.dataset.state = "connected";
  terminal.focus();
});
line.addEventListener("message", (event) => print(decoder.decode(event.data, { stream: true })));
line.addEventListener("close", () => {
  document.body.dataset.state = "disconnected";
  status.textContent = "There is no console here any more. Ask for a new address to open it again.";
});
terminal.addEventListener("keydown", (event) => {
  if (event.altKey || event.metaKey) return;
  let text = NAMED[event.key] ?? (event.key.length === 1 ? event.key : "");
  if (event.ctrlKey) text = /^[a-z@[\\\]^_]$/i.test(event.key) ? String.fromCharCode(event.key.toUpperCase().charCodeAt(0) & 31) : "";
  if (!text) return;
  event.preventDefault();
  send(text);
});
terminal.addEventListener("paste", (event) => send(event.clipboardData.getData("text")));
