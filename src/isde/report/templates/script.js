"use strict";
(() => {
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const articles = all("article.block");
const button = document.getElementById("all");
let chosen = null;
all(".script-only").forEach((part) => { part.hidden = false; });
const mark = (block, name, on) => {
all(`[data-block="${block}"]`).forEach((part) => part.classList.toggle(name, on));
all("line[data-of]").forEach((line) => {
if (line.dataset.of.split(" ").includes(block)) line.classList.toggle(name, on);
});
};
const showAll = (on) => {
button.setAttribute("aria-pressed", String(on));
articles.forEach((article) => { article.hidden = !on && article.dataset.block !== chosen; });
};
const choose = (block, move) => {
if (chosen !== null) mark(chosen, "chosen", false);
chosen = block;
mark(block, "chosen", true);
showAll(button.getAttribute("aria-pressed") === "true");
if (!move) return;
const title = document.getElementById("title-" + block);
title.focus({ preventScroll: true });
title.closest("article").scrollIntoView({ block: "start" });
};
button.addEventListener("click", () => showAll(button.getAttribute("aria-pressed") !== "true"));
document.addEventListener("click", (event) => {
const link = event.target.closest('a[href^="#block-"]');
if (!link) return;
event.preventDefault();
choose(link.getAttribute("href").slice("#block-".length), true);
});
const hover = (event, on) => {
const part = event.target.closest && event.target.closest("[data-block]");
if (part && !part.matches("article")) mark(part.dataset.block, "hot", on);
};
document.addEventListener("pointerover", (event) => hover(event, true));
document.addEventListener("pointerout", (event) => hover(event, false));
document.addEventListener("focusin", (event) => hover(event, true));
document.addEventListener("focusout", (event) => hover(event, false));
const wanted = location.hash.startsWith("#block-") ? location.hash.slice("#block-".length) : null;
const first = articles.find((article) => article.dataset.block === wanted) || articles[0];
if (first) choose(first.dataset.block, wanted !== null);

const heat = document.getElementById("heat");
if (!heat) return;
const order = heat.dataset.order.split(" ");
const side = Number(heat.dataset.cell), left = Number(heat.dataset.label), top = Number(heat.dataset.top);
const svg = heat.querySelector("svg"), cursor = document.getElementById("cursor"), readout = document.getElementById("readout");
const rows = new Map(all("#pair-table tbody tr").map((row) => [row.dataset.p, row]));
const labels = all("text.label", svg).map((text) => text.textContent);
let at = [0, 1];
const show = (row, column) => {
at = [row, column];
cursor.setAttribute("x", left + column * side);
cursor.setAttribute("y", top + row * side);
cursor.setAttribute("visibility", "visible");
if (row === column) { readout.textContent = labels[2 * row] + ": a column has no gain with itself."; return; }
const pair = [order[row], order[column]].map(Number).sort((a, b) => a - b).join(" ");
const found = rows.get(pair);
if (!found) { readout.textContent = "Not among the pairs listed below."; return; }
const cells = [...found.children].map((cell) => cell.textContent.trim());
readout.textContent = `${cells[0]}: gain ${cells[1]} nats, error ${cells[2]}, chance ${cells[3]}${cells[5] ? ", " + cells[5] : ""}`;
};
const inside = (value) => Math.min(order.length - 1, Math.max(0, value));
svg.addEventListener("pointermove", (event) => {
const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
const column = Math.floor(((event.clientX - box.left) * scale - left) / side);
const row = Math.floor(((event.clientY - box.top) * scale - top) / side);
if (row >= 0 && column >= 0 && row < order.length && column < order.length) show(row, column);
});
const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
heat.addEventListener("keydown", (event) => {
const step = steps[event.key];
if (!step) return;
event.preventDefault();
show(inside(at[0] + step[0]), inside(at[1] + step[1]));
});
heat.addEventListener("focus", () => show(at[0], at[1]));
})();
