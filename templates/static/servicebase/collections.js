// The pages of collections: uploads with their progress, the question before something is deleted, and what went wrong.
"use strict";
{
  const AT_ONCE = 2; // the server reads few bodies at a time
  const FINISHED = { ready: "ready", empty: "no text was found", failed: "could not be read" };

  const size = (bytes) => (bytes / 1024 / 1024).toFixed(0) + " MB";

  // What the server said, as a sentence; anything else than its own answers is trouble on the way.
  function read(request) {
    try {
      return JSON.parse(request.responseText);
    } catch {
      return {};
    }
  }

  class Uploads {
    constructor(form) {
      this.form = form;
      this.list = document.getElementById("uploads");
      this.row = document.getElementById("upload-row");
      this.waiting = [];
      this.running = 0;
    }

    add(files) {
      // What has arrived stands in the list of documents; only what did not stays.
      for (const done of this.list.querySelectorAll(".done")) done.remove();
      for (const file of files) {
        const shown = this.row.content.firstElementChild.cloneNode(true);
        shown.querySelector(".what").textContent = file.name;
        shown.querySelector("progress").setAttribute("aria-label", `Sending ${file.name}`);
        this.list.hidden = false;
        this.list.append(shown);
        this.waiting.push({ file, shown, metadata: this.form.elements.metadata.value.trim() });
      }
      this.next();
    }

    next() {
      while (this.running < AT_ONCE && this.waiting.length > 0) this.send(this.waiting.shift());
    }

    send(upload) {
      if (upload.file.size > Number(this.form.dataset.limit)) {
        this.say(upload, `larger than ${size(Number(this.form.dataset.limit))}`, "bad");
        return;
      }
      const bar = upload.shown.querySelector("progress");
      const request = new XMLHttpRequest();
      request.open("POST", this.form.action);
      request.setRequestHeader("X-CSRFToken", this.form.elements.csrfmiddlewaretoken.value);
      request.upload.addEventListener("progress", (event) => {
        bar.max = event.total || 1;
        bar.value = event.loaded;
        this.say(upload, `${Math.floor((100 * event.loaded) / (event.total || 1))} % sent`);
      });
      request.addEventListener("loadend", () => {
        this.running -= 1;
        this.tell(upload, request);
        this.next();
      });
      const body = new FormData();
      if (upload.metadata) body.append("metadata", upload.metadata);
      body.append("file", upload.file);
      this.running += 1;
      this.say(upload, "sending");
      request.send(body);
    }

    tell(upload, request) {
      const answer = read(request);
      if (request.status >= 200 && request.status < 300) {
        const state = answer.document_status;
        this.say(upload, answer.duplicate ? "is there already" : FINISHED[state] || "received; the list below says how far it is");
        const bar = upload.shown.querySelector("progress");
        bar.value = bar.max;
        bar.hidden = answer.duplicate;
        upload.shown.classList.add("done");
      } else {
        this.say(upload, answer.errors?.[0]?.message || "could not be sent", "bad");
        if (request.status === 0 || request.status === 429 || request.status >= 500) this.offer(upload);
      }
      htmx.trigger(document.body, "uploaded");
    }

    offer(upload) {
      const again = upload.shown.querySelector("button");
      again.hidden = false;
      again.onclick = () => {
        again.hidden = true;
        this.waiting.push(upload);
        this.next();
      };
    }

    say(upload, text, mood = "") {
      const said = upload.shown.querySelector(".said");
      said.textContent = text;
      said.classList.toggle("bad", mood === "bad");
      upload.shown.querySelector("progress").hidden = mood === "bad";
    }
  }

  function takeFiles(form) {
    const uploads = new Uploads(form);
    const zone = form.querySelector(".drop");
    const picker = form.querySelector("[type=file]");
    picker.addEventListener("change", () => {
      uploads.add(picker.files);
      picker.value = ""; // the same file may be chosen again
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    // Beside the zone a dropped file would replace the page.
    for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
    zone.addEventListener("dragover", () => zone.classList.add("over"));
    for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => uploads.add(event.dataTransfer.files));
    window.addEventListener("beforeunload", (event) => uploads.running > 0 && event.preventDefault());
  }

  // In place of the browser's own box: it is read out, has two named buttons, and Escape means no.
  const question = document.getElementById("question");
  document.addEventListener("htmx:confirm", (event) => {
    if (!event.detail.question) return;
    event.preventDefault();
    document.getElementById("question-text").textContent = event.detail.question;
    question.returnValue = "no";
    question.onclose = () => {
      if (question.returnValue === "yes") event.detail.issueRequest(true);
      else htmx.trigger(document.body, "uploaded"); // what was held back meanwhile
    };
    question.showModal();
  });

  // A list must not be replaced while somebody decides about it, nor while it is about to be replaced by their doing: the
  // answer to that would find it gone. A page that nobody sees does not poll.
  let underWay = 0;
  const cause = (event) => event.detail.requestConfig.triggeringEvent?.type ?? "poll";
  const isByItself = (event) => ["poll", "uploaded"].includes(cause(event));
  document.addEventListener("htmx:beforeRequest", (event) => {
    const isUnseen = document.hidden && cause(event) === "poll";
    if (!isByItself(event)) {
      underWay += 1;
      event.detail.xhr.addEventListener("loadend", () => (underWay -= 1));
    } else if (question.open || underWay > 0 || isUnseen) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (isByItself(event) && (question.open || underWay > 0)) event.detail.shouldSwap = false;
    // A search says in its own place what went wrong, whatever the status of that is.
    if (event.detail.serverResponse.startsWith('<div id="results"')) {
      event.detail.shouldSwap = true;
      event.detail.isError = false;
    }
  });

  // Who deleted by keyboard goes on where the button was.
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target?.id !== "documents" || isByItself(event)) return;
    if (document.activeElement === document.body) document.getElementById("documents-title").focus();
  });

  // "Show more" exchanges the whole answer: go on at the first passage that is new, and not where the page has grown to.
  let known = 0;
  document.addEventListener("htmx:beforeRequest", (event) => {
    known = event.detail.elt.id === "more" ? document.querySelectorAll(".hits > li").length : 0;
  });
  document.addEventListener("htmx:afterSettle", () => {
    const first = known ? document.querySelectorAll(".hits > li")[known] : null;
    known = 0;
    if (first) {
      first.tabIndex = -1;
      first.focus();
    }
  });

  const trouble = document.getElementById("trouble");
  const say = (text) => {
    trouble.textContent = text;
    trouble.hidden = !text;
  };
  document.addEventListener("htmx:sendError", () => say("The service does not answer just now."));
  document.addEventListener("htmx:responseError", (event) => {
    const { xhr } = event.detail;
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    say(read(xhr).errors?.[0]?.message || page.querySelector("h1")?.textContent || "The service could not do that.");
  });
  document.addEventListener("htmx:afterSwap", (event) => isByItself(event) || say(""));

  const form = document.getElementById("upload");
  if (form) takeFiles(form);
}
