// Replaces textareas of formatted text by an editor. The textarea stays in the form, and changes only when a person
// edits, so that opening a form changes nothing. The server sanitizes what it receives.

import "../../vendor/dompurify/purify.min.js";
import Squire from "../../vendor/squire-rte/squire.mjs";

// What the service keeps, without what the toolbar does not offer and a person cannot see. See tableapi/catalogue/html.py.
const PURIFY = {
  RETURN_DOM_FRAGMENT: true,
  FORBID_TAGS: ["area", "audio", "button", "canvas", "dialog", "form", "input", "map", "math", "select", "style", "svg", "template", "textarea", "video"],
  FORBID_ATTR: ["id", "name", "class"],
};

const COMMANDS = [
  { label: "Bold", tag: "B", keys: "Ctrl+B", on: "bold", off: "removeBold" },
  { label: "Italic", tag: "I", keys: "Ctrl+I", on: "italic", off: "removeItalic" },
  { label: "Link", tag: "A", run: editLink },
  { label: "Heading", tag: "H3", run: toggleHeading },
  { label: "Bulleted list", tag: "UL", on: "makeUnorderedList", off: "removeList" },
  { label: "Numbered list", tag: "OL", on: "makeOrderedList", off: "removeList" },
  { label: "Quote", tag: "BLOCKQUOTE", on: "increaseQuoteLevel", off: "decreaseQuoteLevel" },
];

for (const control of document.querySelectorAll("textarea[data-control=rich-text]")) enhance(control);

function enhance(control) {
  const label = document.querySelector(`label[for="${CSS.escape(control.id)}"]`);
  const box = Object.assign(document.createElement("div"), { className: "rich-text" });
  const root = Object.assign(document.createElement("div"), { className: "rich-text-content", id: `${control.id}-editor` });
  const attributes = { role: "textbox", "aria-multiline": "true", "aria-label": label?.firstChild.textContent.trim() ?? control.name };
  for (const [name, value] of Object.entries(attributes)) root.setAttribute(name, value);
  for (const name of ["aria-describedby", "aria-invalid", "aria-required"]) {
    if (control.hasAttribute(name)) root.setAttribute(name, control.getAttribute(name));
  }
  const toolbar = Object.assign(document.createElement("div"), { className: "rich-text-toolbar" });
  toolbar.setAttribute("role", "toolbar");
  toolbar.setAttribute("aria-label", `Format ${root.getAttribute("aria-label")}`);
  toolbar.setAttribute("aria-controls", root.id);
  box.append(toolbar, root);
  control.before(box);
  control.hidden = true;
  label?.addEventListener("click", (event) => {
    event.preventDefault();
    editor.focus();
  });
  const editor = new Squire(root, {
    blockTag: "P",
    tagAttributes: {},
    addLinks: false,
    sanitizeToDOMFragment: sanitize,
  });
  editor.setHTML(control.value);
  editor.addEventListener("input", () => {
    const isEmpty = !root.textContent.trim() && !root.querySelector("img, hr, table");
    control.value = isEmpty ? "" : editor.getHTML();
    control.dispatchEvent(new Event("input", { bubbles: true }));
  });
  addButtons(toolbar, editor);
  // Tab leaves the editor instead of indenting a list: otherwise the keyboard could not get out.
  for (const keys of ["Tab", "Shift-Tab"]) editor.setKeyHandler(keys, () => {});
  if (control.matches("[aria-invalid=true]") && control === control.form.querySelector("[aria-invalid=true]")) editor.focus();
  else editor.blur();
}

// The Content-Security-Policy blocks style attributes in HTML, but not styles that a script sets.
function sanitize(html) {
  const renamed = html.replace(/(<[a-z][^<>]*?\s)style(\s*=)/gi, "$1data-style$2");
  const fragment = document.importNode(window.DOMPurify.sanitize(renamed, PURIFY), true);
  for (const element of fragment.querySelectorAll("[data-style]")) {
    element.style.cssText = element.dataset.style;
    element.removeAttribute("data-style");
  }
  return fragment;
}

function addButtons(toolbar, editor) {
  const buttons = COMMANDS.map((command, index) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: command.label });
    if (command.keys) button.title = command.keys;
    button.setAttribute("aria-pressed", "false");
    button.tabIndex = index ? -1 : 0;
    button.addEventListener("mousedown", (event) => event.preventDefault()); // the selection stays
    button.addEventListener("click", () => {
      if (command.run) command.run(editor);
      else editor[editor.hasFormat(command.tag) ? command.off : command.on]();
      if (!document.querySelector("dialog[open]")) editor.focus();
    });
    return button;
  });
  toolbar.append(...buttons);
  toolbar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const current = buttons.indexOf(document.activeElement);
    const next = buttons[(current + step + buttons.length) % buttons.length];
    for (const button of buttons) button.tabIndex = button === next ? 0 : -1;
    next.focus();
  });
  const show = () => COMMANDS.forEach((command, index) => buttons[index].setAttribute("aria-pressed", String(editor.hasFormat(command.tag))));
  for (const name of ["pathChange", "select", "cursor", "input"]) editor.addEventListener(name, show);
}

function toggleHeading(editor) {
  const isHeading = editor.hasFormat("H3");
  editor.modifyBlocks((fragment) => {
    const result = document.createDocumentFragment();
    for (const block of [...fragment.childNodes]) {
      const isBlock = block.nodeType === Node.ELEMENT_NODE && /^(P|DIV|H[1-6])$/.test(block.nodeName);
      const replacement = document.createElement(isHeading ? "p" : "h3");
      if (isBlock) replacement.append(...block.childNodes);
      result.append(isBlock ? replacement : block);
    }
    return result;
  });
}

function editLink(editor) {
  if (editor.hasFormat("A")) return editor.removeLink();
  const dialog = Object.assign(document.createElement("dialog"), { className: "link-dialog" });
  const linkForm = Object.assign(document.createElement("form"), { method: "dialog" });
  const label = Object.assign(document.createElement("label"), { textContent: "Address of the link" });
  const input = Object.assign(document.createElement("input"), { type: "url", placeholder: "https://" });
  label.append(input);
  const cancel = Object.assign(document.createElement("button"), { value: "", textContent: "Cancel", className: "secondary" });
  const add = Object.assign(document.createElement("button"), { value: "add", textContent: "Add link" });
  const row = Object.assign(document.createElement("div"), { className: "buttons" });
  row.append(add, cancel);
  linkForm.noValidate = true;
  linkForm.append(label, row);
  dialog.append(linkForm);
  const selection = editor.getSelection();
  dialog.addEventListener("close", () => {
    const url = input.value.trim();
    dialog.remove();
    editor.setSelection(selection);
    editor.focus();
    if (dialog.returnValue !== "add" || !url) return;
    editor.makeLink(/^[a-z]+:/i.test(url) ? url : `https://${url}`);
  });
  document.body.append(dialog);
  dialog.showModal();
}
