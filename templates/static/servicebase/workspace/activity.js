// The activity of a record: mentions, uploads, previews of PDF files, and large images.
//
// All listeners are on the document, because htmx loads and replaces the activity at any time.

const SUGGEST_DELAY_MS = 150;
const MAX_ACTIVE_UPLOADS = 2; // the server reads few bodies at a time
const RETRY_DELAY_MS = 1000;
const MAX_RETRIES = 20;
const RETRY_STATUSES = [429, 503]; // the service creates one preview at a time
const MENTION_START = /(?<![\w.@+-])@([\w.@+-]*)$/;
const UPLOAD_FAILED_TEXT = "Upload failed. Try again. If the file has changed in the meantime, choose it again.";

const panel = () => document.getElementById("activity");
const csrfToken = () => document.querySelector("meta[name=csrf-token]").content;
const delay = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const element = (name, properties) => Object.assign(document.createElement(name), properties);

function parseBody(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {}; // from something between the browser and the service
  }
}

function showError(text) {
  const notice = document.getElementById("activity-error");
  if (!notice) return;
  notice.textContent = text;
  notice.hidden = !text;
}

// Mentions: suggests users while a login is typed after an @.
class Mentions {
  constructor(input) {
    this.input = input;
    this.options = [];
    this.active = -1;
    this.list = element("ul", { id: `${input.id}-mentions`, className: "picker-options", hidden: true });
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Users");
    input.after(this.list);
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", this.list.id);
    input.addEventListener("input", () => this.schedule());
    input.addEventListener("keydown", (event) => this.handleKey(event));
    input.addEventListener("blur", () => this.close());
    this.list.addEventListener("mousedown", (event) => event.preventDefault()); // keeps the focus in the field
    this.list.addEventListener("click", (event) => {
      const index = [...this.list.children].indexOf(event.target.closest("[role=option]"));
      if (index >= 0) this.choose(index);
    });
  }

  typedLogin() {
    const { value, selectionStart, selectionEnd } = this.input;
    return selectionStart === selectionEnd ? value.slice(0, selectionStart).match(MENTION_START) : null;
  }

  schedule() {
    clearTimeout(this.timer);
    if (!this.typedLogin()) return this.close();
    this.timer = setTimeout(() => this.suggest(), SUGGEST_DELAY_MS);
  }

  async suggest() {
    const match = this.typedLogin();
    if (!match) return this.close();
    const request = (this.request = {});
    const url = `${this.input.dataset.mentions}?${new URLSearchParams({ q: match[1] })}`;
    const response = await fetch(url, { headers: { Accept: "application/json" } }).catch(() => null);
    if (!response?.ok || request !== this.request || document.activeElement !== this.input) return;
    this.options = (await response.json()).options;
    this.list.replaceChildren(
      ...this.options.map((option, index) => {
        const row = element("li", { id: `${this.list.id}-${index}`, textContent: [option.label, option.detail].filter(Boolean).join(" ") });
        row.setAttribute("role", "option");
        return row;
      }),
    );
    this.list.hidden = !this.options.length;
    this.activate(this.options.length ? 0 : -1);
  }

  activate(index) {
    this.active = index;
    [...this.list.children].forEach((row, position) => row.setAttribute("aria-selected", String(position === index)));
    if (index < 0) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", this.list.children[index].id);
    this.list.children[index].scrollIntoView({ block: "nearest" });
  }

  handleKey(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      return this.input.form.requestSubmit();
    }
    if (this.list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.activate((this.active + step + this.options.length) % this.options.length);
    else if (event.key === "Enter" || event.key === "Tab") this.choose(this.active);
    else if (event.key === "Escape") this.close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  choose(index) {
    const match = this.typedLogin();
    if (match) {
      const end = this.input.selectionStart;
      this.input.setRangeText(`@${this.options[index].label} `, end - match[0].length, end, "end");
    }
    this.close();
  }

  close() {
    clearTimeout(this.timer);
    this.request = null;
    this.options = [];
    this.list.hidden = true;
    this.input.removeAttribute("aria-activedescendant");
  }
}

document.addEventListener("focusin", (event) => {
  if (event.target.matches("textarea[data-mentions]:not([aria-autocomplete])")) new Mentions(event.target);
});

// Uploads: each file has a row that ends with what became of it.
const pendingUploads = [];
let activeUploads = 0;

function addUploads(form, files) {
  const list = document.getElementById("activity-uploads");
  list.querySelectorAll(".is-finished").forEach((row) => row.remove());
  for (const file of files) {
    const row = element("li");
    const name = element("span", { className: "item-text", textContent: file.name });
    const bar = element("progress", { max: 1, value: 0 });
    bar.setAttribute("aria-label", `Sending ${file.name}`);
    const status = element("span", { className: "muted small", textContent: "waiting" });
    status.setAttribute("role", "status");
    row.append(name, bar, status);
    list.append(row);
    pendingUploads.push({ file, row, bar, status, url: form.action, limitBytes: Number(form.dataset.limitBytes) });
  }
  list.hidden = false;
  startUploads();
}

function startUploads() {
  while (activeUploads < MAX_ACTIVE_UPLOADS && pendingUploads.length) {
    activeUploads += 1;
    send(pendingUploads.shift()).finally(() => {
      activeUploads -= 1;
      finishedUploads += 1;
      startUploads();
      if (!activeUploads) refreshFiles();
    });
  }
}

function send({ file, row, bar, status, url, limitBytes }) {
  const finish = (text, isError) => {
    status.textContent = text;
    status.classList.toggle("error-text", isError);
    bar.hidden = true;
    row.classList.add("is-finished");
  };
  if (file.size > limitBytes) {
    finish(`Larger than ${Math.floor(limitBytes / 1024 / 1024)} MB`, true);
    return Promise.resolve();
  }
  const request = new XMLHttpRequest();
  request.open("POST", url);
  request.setRequestHeader("Accept", "application/json");
  request.setRequestHeader("X-CSRFToken", csrfToken());
  request.upload.addEventListener("progress", (event) => {
    bar.max = event.total || 1;
    bar.value = event.loaded;
    status.textContent = `${Math.floor((100 * event.loaded) / (event.total || 1))}% sent`;
  });
  const body = new FormData();
  body.append("file", file);
  return new Promise((resolve) => {
    request.addEventListener("loadend", () => {
      const messages = (parseBody(request.responseText).errors ?? []).map((error) => error.message).join(" ");
      if (request.status === 201) finish("Attached", false);
      else finish(messages || UPLOAD_FAILED_TEXT, true);
      resolve();
    });
    request.send(body);
  });
}

function refreshFiles() {
  const form = document.getElementById("activity-upload");
  if (form) htmx.ajax("GET", form.dataset.activity, { target: "#activity-files", swap: "outerHTML" });
}

// The rows of uploads outlive a replacement of the activity. (hx-preserve needs an inline style, which the policy forbids.)
// A response that was built before the end of an upload does not contain its file.
let uploadsList = null;
let finishedUploads = 0;
document.addEventListener("htmx:beforeRequest", (event) => (event.detail.xhr.finishedUploads = finishedUploads));
document.addEventListener("htmx:beforeSwap", () => (uploadsList = document.getElementById("activity-uploads")));
document.addEventListener("htmx:afterSwap", (event) => {
  const newList = document.getElementById("activity-uploads");
  if (newList && uploadsList && newList !== uploadsList) newList.replaceWith(uploadsList);
  if (event.detail.xhr.finishedUploads < finishedUploads && document.getElementById("activity-files")) refreshFiles();
});

document.addEventListener("change", (event) => {
  if (event.target.id !== "attachment-file") return;
  addUploads(event.target.form, event.target.files);
  event.target.value = ""; // so that the same file can be chosen again
});
document.addEventListener("submit", (event) => event.target.id === "activity-upload" && event.preventDefault());

// Files may be dropped anywhere on the activity. Dropped beside it, they would replace the page.
const dropForm = (event) => event.target.closest?.("#activity") && document.getElementById("activity-upload");
const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
const markDropZone = (isOver) => document.getElementById("activity-upload")?.classList.toggle("is-dragged-over", isOver);
document.addEventListener("dragover", (event) => {
  if (!hasFiles(event) || !panel()) return;
  event.preventDefault();
  markDropZone(Boolean(dropForm(event)));
});
document.addEventListener("dragleave", (event) => event.relatedTarget || markDropZone(false));
document.addEventListener("drop", (event) => {
  if (!hasFiles(event) || !panel()) return;
  event.preventDefault();
  markDropZone(false);
  const form = dropForm(event);
  if (form) addUploads(form, event.dataTransfer.files);
});
window.addEventListener("beforeunload", (event) => activeUploads > 0 && event.preventDefault());

// Previews: a page at a time, as an image made by the service.
async function fetchPage(url) {
  for (let attempt = 0; attempt < MAX_RETRIES; attempt += 1) {
    const response = await fetch(url, { headers: { Accept: "application/json" } }).catch(() => null);
    if (!response || !RETRY_STATUSES.includes(response.status)) return response;
    await delay(RETRY_DELAY_MS);
  }
  return null;
}

const dataUrl = (blob) =>
  new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(blob);
  });

async function showPage(details, number) {
  const [status, image, buttons] = details.querySelector(".pages").children;
  status.textContent = `Loading page ${number}…`;
  for (const button of buttons.children) button.disabled = true;
  const response = await fetchPage(`${details.dataset.pages}${number}/`);
  if (!response?.ok) {
    status.textContent = "No preview";
    return;
  }
  const count = Number(response.headers.get("X-Page-Count"));
  image.src = await dataUrl(await response.blob());
  image.alt = `Page ${number} of ${details.dataset.name}`;
  image.hidden = false;
  status.textContent = `Page ${number} of ${count}`;
  const [previous, next] = buttons.children;
  [previous.onclick, next.onclick] = [() => showPage(details, number - 1), () => showPage(details, number + 1)];
  [previous.disabled, next.disabled] = [number === 1, number >= count];
  buttons.hidden = count < 2;
}

document.addEventListener(
  "toggle",
  ({ target: details }) => {
    if (!details.matches?.(".pdf-preview[open]") || details.querySelector(".pages")) return;
    const pages = element("div", { className: "pages" });
    const status = element("p", { className: "muted small" });
    status.setAttribute("role", "status");
    const buttons = element("p", { className: "buttons", hidden: true });
    for (const text of ["Previous page", "Next page"]) {
      buttons.append(element("button", { type: "button", className: "secondary", textContent: text }));
    }
    pages.append(status, element("img", { className: "page-image", hidden: true }), buttons);
    details.append(pages);
    showPage(details, 1);
  },
  true, // this event does not bubble
);

// Images open large on the page. Without this script, the link leads to the image.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("#activity a.thumbnail");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const dialog = element("dialog", { className: "image-dialog" });
  const name = link.querySelector("img").alt;
  dialog.setAttribute("aria-label", name);
  const close = element("button", { type: "button", className: "secondary", textContent: "Close" });
  close.onclick = () => dialog.close();
  dialog.append(element("img", { src: link.href, alt: name }), close);
  dialog.onclose = () => {
    dialog.remove();
    link.focus();
  };
  dialog.onclick = ({ target }) => target === dialog && dialog.close();
  document.body.append(dialog);
  dialog.showModal();
});

// "Show older" is replaced by what it loads, so the focus moves to the first new entry.
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target?.id !== "activity-older") return;
  const newList = [...document.querySelectorAll("#activity .entries")].at(-1);
  newList?.firstElementChild.setAttribute("tabindex", "-1");
  newList?.firstElementChild.focus();
});

// An error without a page of its own, such as a deleted record, is shown instead of swapped in.
const isOfActivity = (event) => panel()?.contains(event.detail.elt);
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isOfActivity(event) || !event.detail.xhr.getResponseHeader("Content-Type")?.includes("json")) return;
  event.detail.shouldSwap = false;
  showError(parseBody(event.detail.xhr.responseText).errors?.[0]?.message ?? "The request failed.");
});
document.addEventListener("htmx:sendError", (event) => {
  if (isOfActivity(event)) showError("The service is not responding. Try again later.");
});
