// The pages of collections: uploads with their progress, the question before something is deleted, and what went wrong.
"use strict";
{
  const AT_ONCE = 2; // the server reads few bodies at a time
  const FINISHED = { ready: "ready", empty: "no text found", failed: "could not be read" };
  const HOPELESS = [413, 415]; // too large, or of a kind that is not loaded: so it is the next time
  const EMPTY = "empty_file"; // and so is this
  const NOT_SENT = "Upload failed. Try again. If the file has changed since, choose it again.";
  const SEVERAL = "Several documents have this name, so it is unclear which one to replace. Delete all but one and try again.";
  const UNSEEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/gu; // the service keeps names without them

  let uploaded = 0; // since the page was opened

  const size = (bytes) => (bytes / 1024 / 1024).toFixed(0) + " MB";

  // What the server said, as a sentence; anything else than its own answers is trouble on the way.
  function read(request) {
    try {
      return JSON.parse(request.responseText);
    } catch {
      return {};
    }
  }

  // The documents that have exactly this name; null when the service does not say.
  async function namesakes(address, name) {
    const found = [];
    // The list is narrowed by a part of the name, so it may be long.
    for (let offset = "0"; name && offset; ) {
      const answer = await fetch(`${address}?${new URLSearchParams({ filename: name, limit: 500, offset })}`).catch(() => null);
      if (!answer?.ok) return null;
      for (const each of await answer.json()) if (each.filename.normalize("NFC") === name) found.push(each);
      offset = answer.headers.get("X-Next-Offset");
    }
    return found;
  }

  class Uploads {
    constructor(form) {
      this.form = form;
      this.list = document.getElementById("uploads");
      this.row = document.getElementById("upload-row");
      this.ofAll = document.getElementById("uploads-failed");
      this.waiting = [];
      this.running = new Set();
      for (const what of ["again", "away"]) this.ofAll.querySelector(`.${what}`).onclick = () => this.press(what);
    }

    add(files) {
      // What has arrived stands in the list of documents; only what did not stays.
      for (const done of this.list.querySelectorAll(".done")) done.remove();
      for (const file of files) {
        const shown = this.row.content.firstElementChild.cloneNode(true);
        const [again, away] = shown.querySelectorAll("button");
        shown.querySelector(".what").textContent = file.name;
        shown.querySelector("progress").setAttribute("aria-label", `Sending ${file.name}`);
        again.setAttribute("aria-label", `Retry ${file.name}`);
        away.setAttribute("aria-label", `Remove ${file.name} from this list`);
        this.list.hidden = false;
        this.list.append(shown);
        const upload = { file, shown, name: file.name.replace(UNSEEN, "").trim().normalize("NFC") };
        again.onclick = () => this.again(upload);
        away.onclick = () => this.remove(upload);
        this.queue(upload);
      }
      this.next();
    }

    queue(upload) {
      upload.shown.querySelector("progress").value = 0;
      upload.metadata = this.form.elements.metadata.value.trim();
      upload.replaces = this.form.elements.replaces.checked;
      this.waiting.push(upload);
    }

    // Those of one name go one after the other: the later ones take the place of the first.
    next() {
      while (this.running.size < AT_ONCE) {
        const names = [...this.running].map((each) => each.name);
        const free = this.waiting.findIndex((each) => !names.includes(each.name));
        if (free < 0) return;
        const [upload] = this.waiting.splice(free, 1);
        this.running.add(upload);
        this.deliver(upload).finally(() => {
          this.running.delete(upload);
          this.next();
        });
      }
    }

    namesakes(upload) {
      return namesakes(this.form.action.split("?")[0], upload.name);
    }

    async deliver(upload) {
      const limit = Number(this.form.dataset.limit);
      if (upload.file.size > limit) {
        this.fail(upload, `larger than ${size(limit)}`, false);
        return;
      }
      this.say(upload, "sending");
      const there = upload.replaces ? await this.namesakes(upload) : [];
      if (there === null) this.fail(upload, NOT_SENT, true);
      else if (there.length > 1) this.fail(upload, SEVERAL, true);
      else this.tell(upload, await this.send(upload, there[0]));
    }

    // What is sent, in place of this document if there is one; it keeps its metadata where none are given.
    send(upload, replaced) {
      const bar = upload.shown.querySelector("progress");
      const request = new XMLHttpRequest();
      request.open("POST", this.form.action);
      request.setRequestHeader("X-CSRFToken", this.form.elements.csrfmiddlewaretoken.value);
      request.upload.addEventListener("progress", (event) => {
        bar.max = event.total || 1;
        bar.value = event.loaded;
        this.say(upload, `${Math.floor((100 * event.loaded) / (event.total || 1))} % sent`);
      });
      const body = new FormData();
      const metadata = upload.metadata || (replaced && JSON.stringify(replaced.metadata));
      if (metadata) body.append("metadata", metadata);
      if (replaced) {
        body.append("doc_id", replaced.doc_id);
        body.append("on_duplicate", "replace");
      }
      body.append("file", upload.file);
      return new Promise((resolve) => {
        request.addEventListener("loadend", () => resolve(request));
        request.send(body);
      });
    }

    tell(upload, request) {
      const answer = read(request);
      if (request.status >= 200 && request.status < 300) {
        const said = FINISHED[answer.document_status] || "uploaded, processing…";
        this.say(upload, answer.duplicate ? "already exists" : said);
        if (!answer.duplicate) this.tellOfNamesakes(upload, said, answer.doc_id);
        const bar = upload.shown.querySelector("progress");
        bar.value = bar.max;
        bar.hidden = answer.duplicate;
        upload.shown.classList.add("done");
      } else {
        const said = (answer.errors ?? []).map((each) => each.message);
        const code = answer.errors?.[0]?.code;
        if (code === "invalid_metadata") said.push("Change the metadata above and try again.");
        this.fail(upload, said.join(" ") || NOT_SENT, !HOPELESS.includes(request.status) && code !== EMPTY);
      }
      uploaded += 1;
      htmx.trigger(document.body, "uploaded");
    }

    // Searches find both, and the older one may well be the better match.
    async tellOfNamesakes(upload, said, docId) {
      const found = (await this.namesakes(upload)) ?? [];
      if (found.some((each) => each.doc_id !== docId)) this.say(upload, `${said}; there is another document with this name`);
    }

    fail(upload, text, mayHelp) {
      upload.shown.querySelector(".again").hidden = !mayHelp;
      this.say(upload, text, true);
    }

    // With the metadata as they are now: they may be what was wrong.
    again(upload) {
      this.say(upload, "waiting");
      upload.shown.tabIndex = -1; // the button that had the focus is gone
      upload.shown.focus();
      this.queue(upload);
      this.next();
    }

    remove(upload) {
      upload.shown.remove();
      this.list.hidden = this.list.childElementCount === 0;
      this.countFailed();
      (this.list.querySelector(".failed .away") ?? this.form.elements.file).focus();
    }

    // A button of all that failed; pressing one may change which these are.
    press(what) {
      for (const each of [...this.list.querySelectorAll(`.failed .${what}:not([hidden])`)]) each.click();
    }

    countFailed() {
      this.ofAll.hidden = this.list.querySelectorAll(".failed").length < 2;
      this.ofAll.querySelector(".again").hidden = !this.list.querySelector(".failed .again:not([hidden])");
    }

    say(upload, text, isBad = false) {
      const said = upload.shown.querySelector(".said");
      said.textContent = text;
      said.classList.toggle("bad", isBad);
      upload.shown.classList.toggle("failed", isBad);
      upload.shown.querySelector("progress").hidden = isBad;
      upload.shown.querySelector(".buttons").hidden = !isBad;
      this.countFailed();
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
    window.addEventListener("beforeunload", (event) => uploads.running.size > 0 && event.preventDefault());
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

  // What is uploaded while the list is asked for may not be in the answer, and what would ask again goes with the old list.
  document.addEventListener("htmx:beforeRequest", (event) => (event.detail.xhr.uploadedBefore = uploaded));
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target?.id === "documents" && event.detail.xhr.uploadedBefore < uploaded) htmx.trigger(document.body, "uploaded");
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
  document.addEventListener("htmx:sendError", () => say("The service is not responding. Try again later."));
  document.addEventListener("htmx:responseError", (event) => {
    const { xhr } = event.detail;
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    say(read(xhr).errors?.[0]?.message || page.querySelector("h1")?.textContent || "The request failed.");
  });
  document.addEventListener("htmx:afterSwap", (event) => isByItself(event) || say(""));

  const form = document.getElementById("upload");
  if (form) takeFiles(form);
}
