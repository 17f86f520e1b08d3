"use strict";

const LEAST = 1.6;  // a drawing is made smaller to fit at first, but no smaller than can be read

// Pan and zoom of a drawing: drag, wheel with Ctrl, the buttons, or the keys + - 0 and the arrows.
for (const frame of document.querySelectorAll("[data-pan]")) {
  const svg = frame.querySelector("svg");
  const whole = { x: 0, y: 0, width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height };
  const box = { ...whole };
  const show = () => svg.setAttribute("viewBox", `${box.x} ${box.y} ${box.width} ${box.height}`);
  const show_at = (scale) => {  // units of the drawing to a pixel
    const focus = svg.querySelector(".focus rect");
    box.width = frame.clientWidth * scale;
    box.height = frame.clientHeight * scale;
    const x = focus ? focus.x.baseVal.value + focus.width.baseVal.value / 2 : Math.min(whole.width, box.width) / 2;
    const y = focus ? focus.y.baseVal.value + focus.height.baseVal.value / 2 : Math.min(whole.height, box.height) / 2;
    box.x = whole.width <= box.width ? (whole.width - box.width) / 2 : x - box.width / 2;
    box.y = whole.height <= box.height ? Math.min((whole.height - box.height) / 2, -44 * scale) : y - box.height / 2;
    show();
  };
  const natural = () => show_at(1);
  const fit = () => { Object.assign(box, whole); show(); };
  const zoom = (factor, u = 0.5, v = 0.5) => {
    const width = Math.min(Math.max(box.width * factor, 200), Math.max(whole.width, frame.clientWidth) * 2);
    const height = box.height * (width / box.width);
    box.x += (box.width - width) * u;
    box.y += (box.height - height) * v;
    box.width = width;
    box.height = height;
    show();
  };
  const move = (dx, dy) => { box.x += dx * box.width; box.y += dy * box.height; show(); };

  frame.classList.add("pan");
  const buttons = document.createElement("div");
  buttons.className = "buttons";
  for (const [text, label, act] of [["+", "Zoom in", () => zoom(0.8)], ["−", "Zoom out", () => zoom(1.25)], ["Actual size", "", natural], ["Fit", "", fit]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    if (label) button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    buttons.append(button);
  }
  frame.append(buttons);
  let width = 0;
  new ResizeObserver(() => {  // a drawing for another width of screen has none
    if (frame.clientWidth === width) return;
    width = frame.clientWidth;
    const scale = Math.min(Math.max(whole.width / width, 1), LEAST);
    frame.style.height = `${Math.max(120, Math.min(innerHeight * 0.75, whole.height / scale + 60))}px`;
    if (width) show_at(scale);
  }).observe(frame);

  let last = null;
  let far = 0;
  frame.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.target.closest("button")) return;
    last = event;
    far = 0;
  });
  addEventListener("pointermove", (event) => {
    if (!last) return;
    const scale = Math.max(box.width / frame.clientWidth, box.height / frame.clientHeight);
    far += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
    if (far > 4) frame.classList.add("drag");
    box.x -= (event.clientX - last.clientX) * scale;
    box.y -= (event.clientY - last.clientY) * scale;
    last = event;
    show();
  });
  addEventListener("pointerup", () => { last = null; frame.classList.remove("drag"); });
  addEventListener("pointercancel", () => { last = null; frame.classList.remove("drag"); });
  frame.addEventListener("dragstart", (event) => event.preventDefault());
  frame.addEventListener("click", (event) => { if (far > 4 && !event.target.closest("button")) { event.preventDefault(); far = 0; } }, true);
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = frame.getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.15 : 0.87, (event.clientX - at.left) / at.width, (event.clientY - at.top) / at.height);
  }, { passive: false });
  const keys = { "+": () => zoom(0.8), "=": () => zoom(0.8), "-": () => zoom(1.25), "0": natural,
    ArrowLeft: () => move(-0.15, 0), ArrowRight: () => move(0.15, 0), ArrowUp: () => move(0, -0.15), ArrowDown: () => move(0, 0.15) };
  frame.addEventListener("keydown", (event) => {
    if (event.target !== frame || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  svg.addEventListener("focusin", (event) => {  // a box that the keyboard reaches is moved into sight
    const rect = event.target.querySelector("rect");
    if (!rect || last) return;
    const x = rect.x.baseVal.value;
    const y = rect.y.baseVal.value;
    if (x < box.x || y < box.y || x + rect.width.baseVal.value > box.x + box.width || y + rect.height.baseVal.value > box.y + box.height) {
      box.x = x - box.width / 2;
      box.y = y - box.height / 2;
      show();
    }
  });
}

for (const frame of document.querySelectorAll(".graph:not([data-pan])")) {  // a wide drawing begins with its focus in sight
  const focus = frame.querySelector(".focus rect");
  if (focus) frame.scrollLeft = focus.x.baseVal.value + focus.width.baseVal.value / 2 - frame.clientWidth / 2;
}

// Live progress: an event says that something moved, and the page is read again; the server draws all of it.
const live = document.querySelector("[data-events]");
if (live) {
  let wait = 0;
  const read = async () => {
    const answer = await fetch(location.href, { credentials: "same-origin" }).catch(() => null);
    wait = 0;
    if (!answer || !answer.ok) return;  // the event stream tells when the server is back
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById(live.id);
    if (!fresh || !fresh.dataset.events) { location.reload(); return; }
    live.replaceChildren(...fresh.childNodes);
  };
  const soon = () => { if (!wait) wait = setTimeout(read, 400); };
  const events = new EventSource(live.dataset.events);
  for (const name of live.dataset.names.split(" ")) events.addEventListener(name, soon);
  events.addEventListener("error", soon);  // the stream has ended, or is being opened again
}

// A part of a page that takes long is loaded after it; a server that still works on it says when to ask again.
for (const part of document.querySelectorAll("[data-load]")) {
  const load = async () => {
    const answer = await fetch(part.dataset.load, { credentials: "same-origin" }).catch(() => null);
    if (answer && answer.status === 503) { setTimeout(load, 1000 * Number(answer.headers.get("Retry-After") || 2)); return; }
    if (!answer || !answer.ok || answer.redirected) return;  // to the form for a token
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").body;
    if (fresh.childElementCount) part.replaceChildren(...fresh.childNodes); else part.remove();
  };
  load();
}

addEventListener("keydown", (event) => {
  const field = document.getElementById("q") || document.getElementById("find");
  if (event.key === "/" && field && !event.target.closest("input, select, textarea")) { event.preventDefault(); field.focus(); }
});
