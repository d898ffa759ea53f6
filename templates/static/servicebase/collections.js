// The pages of collections: uploads with their progress, confirmations, and error messages.
"use strict";
{
  const MAX_ACTIVE_UPLOADS = 2; // the server reads few bodies at a time
  const STATUS_INTERVAL_MS = 2000;
  // The states after which nothing more happens. An unknown one: the document was deleted, or the person signed out.
  const STATE_TEXTS = {
    ready: "ready", empty: "no text found", failed: "could not be read", duplicate: "already exists", unknown: "uploaded",
  };
  const PERMANENT_ERROR_STATUSES = [413, 415]; // too large, or an unsupported type: a retry would fail again
  const EMPTY_FILE_CODE = "empty_file"; // a permanent error too
  const UPLOAD_FAILED_TEXT = "Upload failed. Try again. If the file has changed in the meantime, choose it again.";
  const REMOVED_CHARACTERS = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/gu; // the service stores names without them

  let uploadCount = 0; // since the page was opened

  const formatMegabytes = (bytes) => (bytes / 1024 / 1024).toFixed(0) + " MB";

  // The JSON body of a response; an empty object if it is not from the service but from something in between.
  function parseBody(request) {
    try {
      return JSON.parse(request.responseText);
    } catch {
      return {};
    }
  }

  // The documents that have exactly this name, or null if the service did not return them.
  async function findDocuments(url, name) {
    const documents = [];
    // The filter matches parts of names, so there may be several pages.
    for (let offset = "0"; name && offset; ) {
      const response = await fetch(`${url}?${new URLSearchParams({ filename: name, limit: 500, offset })}`).catch(() => null);
      if (!response?.ok) return null;
      for (const candidate of await response.json()) if (candidate.filename.normalize("NFC") === name) documents.push(candidate);
      offset = response.headers.get("X-Next-Offset");
    }
    return documents;
  }

  class UploadQueue {
    constructor(form) {
      this.form = form;
      this.list = document.getElementById("uploads");
      this.rowTemplate = document.getElementById("upload-template");
      this.bulkButtons = document.getElementById("failed-uploads");
      this.pendingUploads = [];
      this.activeUploads = new Set();
      this.followedUploads = [];
      for (const name of ["upload-retry", "upload-remove"]) {
        this.bulkButtons.querySelector(`.${name}`).onclick = () => this.clickAll(name);
      }
    }

    // With a `replaceUrl`, the file replaces that document, whatever their names.
    add(files, replaceUrl = null) {
      // Only failed uploads stay in this list; the others are in the list of documents.
      for (const row of this.list.querySelectorAll(".is-done")) row.remove();
      for (const file of files) {
        const row = this.rowTemplate.content.firstElementChild.cloneNode(true);
        const [retryButton, removeButton] = row.querySelectorAll("button");
        row.querySelector(".item-text").textContent = file.name;
        row.querySelector("progress").setAttribute("aria-label", `Sending ${file.name}`);
        retryButton.setAttribute("aria-label", `Retry ${file.name}`);
        removeButton.setAttribute("aria-label", `Remove ${file.name} from this list`);
        this.list.hidden = false;
        this.list.append(row);
        const upload = { file, row, replaceUrl, name: file.name.replace(REMOVED_CHARACTERS, "").trim().normalize("NFC") };
        retryButton.onclick = () => this.retry(upload);
        removeButton.onclick = () => this.remove(upload);
        this.enqueue(upload);
      }
      this.startUploads();
    }

    enqueue(upload) {
      upload.row.querySelector("progress").value = 0;
      upload.body = new FormData(this.form); // the metadata of this moment
      upload.body.set("file", upload.file);
      this.pendingUploads.push(upload);
    }

    // Files with the same name are sent one after the other, so that a later one can replace an earlier one.
    startUploads() {
      while (this.activeUploads.size < MAX_ACTIVE_UPLOADS) {
        const activeNames = [...this.activeUploads].map((upload) => upload.name);
        const index = this.pendingUploads.findIndex((upload) => !activeNames.includes(upload.name));
        if (index < 0) return;
        const [upload] = this.pendingUploads.splice(index, 1);
        this.activeUploads.add(upload);
        this.process(upload).finally(() => {
          this.activeUploads.delete(upload);
          this.startUploads();
        });
      }
    }

    findDocuments(upload) {
      return findDocuments(this.form.dataset.documentsUrl, upload.name);
    }

    async process(upload) {
      const limitBytes = Number(this.form.dataset.limitBytes);
      if (upload.file.size > limitBytes) {
        this.showFailure(upload, `larger than ${formatMegabytes(limitBytes)}`, false);
        return;
      }
      this.showStatus(upload, "sending");
      this.showResult(upload, await this.send(upload));
    }

    send(upload) {
      const progressBar = upload.row.querySelector("progress");
      const request = new XMLHttpRequest();
      request.open("POST", upload.replaceUrl ?? this.form.action);
      request.setRequestHeader("Accept", "application/json");
      request.upload.addEventListener("progress", (event) => {
        progressBar.max = event.total || 1;
        progressBar.value = event.loaded;
        this.showStatus(upload, `${Math.floor((100 * event.loaded) / (event.total || 1))}% sent`);
      });
      return new Promise((resolve) => {
        request.addEventListener("loadend", () => resolve(request));
        request.send(upload.body);
      });
    }

    showResult(upload, request) {
      const result = parseBody(request);
      const signIn = document.getElementById("upload-sign-in");
      if (request.responseURL && new URL(request.responseURL).pathname === signIn.firstElementChild.pathname) {
        signIn.hidden = false;
        this.showFailure(upload, "Your session has ended.", false);
        return; // a refresh of the list would reload the page
      }
      // Without an ID, the response is not from the service but from something in between.
      if (request.status >= 200 && request.status < 300 && result.doc_id) {
        upload.docId = result.doc_id;
        this.showState(upload, result.duplicate ? "duplicate" : result.document_status);
        if (!result.duplicate) {
          this.reportSameName(upload);
          this.follow(upload);
        }
        upload.row.classList.add("is-done");
      } else {
        const messages = (result.errors ?? []).map((error) => error.message);
        const code = result.errors?.[0]?.code;
        if (code === "invalid_metadata") messages.push("Change the metadata above and try again.");
        const canRetry = !PERMANENT_ERROR_STATUSES.includes(request.status) && code !== EMPTY_FILE_CODE;
        this.showFailure(upload, messages.join(" ") || UPLOAD_FAILED_TEXT, canRetry);
      }
      uploadCount += 1;
      htmx.trigger(document.body, "uploaded");
    }

    // Shows how processing ended, because the list of documents may be filtered or show another page. Documents are
    // processed in their order, so only the first of them is asked for until it is finished.
    async follow(upload) {
      if (this.followedUploads.push(upload) > 1) return; // the loop below is running
      while (this.followedUploads.length) {
        if (await this.checkState(this.followedUploads[0])) this.followedUploads.shift();
        else await new Promise((resolve) => setTimeout(resolve, STATUS_INTERVAL_MS));
      }
    }

    // Returns whether nothing more will happen.
    async checkState(upload) {
      if (document.hidden) return false;
      const url = `${this.form.dataset.documentsUrl}?${new URLSearchParams({ doc_id: upload.docId })}`;
      const response = upload.row.isConnected ? await fetch(url).catch(() => ({ status: 503 })) : { status: 404 };
      if (response.status === 429 || response.status >= 500) return false;
      const [found] = response.ok ? await response.json().catch(() => []) : [];
      const state = found?.document_status ?? "unknown";
      if (state === "failed") this.showFailure(upload, found.error || STATE_TEXTS.failed, false);
      else this.showState(upload, state);
      return state in STATE_TEXTS;
    }

    showState(upload, state) {
      upload.state = state;
      const text = STATE_TEXTS[state] ?? "uploaded, processing…";
      const progressBar = upload.row.querySelector("progress");
      progressBar.removeAttribute("value"); // it moves until the file is processed
      progressBar.hidden ||= state in STATE_TEXTS;
      this.setText(upload, upload.hasSameName ? `${text}. Another document has the same name.` : text, false);
    }

    // A search finds both documents, and the older one may be the better match.
    async reportSameName(upload) {
      const documents = (await this.findDocuments(upload)) ?? [];
      upload.hasSameName = documents.some((candidate) => candidate.doc_id !== upload.docId);
      if (upload.hasSameName && !upload.row.classList.contains("is-failed")) this.showState(upload, upload.state);
    }

    showFailure(upload, text, canRetry) {
      upload.row.querySelector(".upload-retry").hidden = !canRetry;
      upload.row.classList.remove("is-done");
      this.showStatus(upload, text, true);
    }

    // Sends the file with the current metadata, because the metadata may have caused the error.
    retry(upload) {
      this.showStatus(upload, "waiting");
      upload.row.tabIndex = -1; // the button that had the focus is hidden
      upload.row.focus();
      this.enqueue(upload);
      this.startUploads();
    }

    remove(upload) {
      upload.row.remove();
      this.list.hidden = this.list.childElementCount === 0;
      this.updateBulkButtons();
      (this.list.querySelector(".is-failed .upload-remove") ?? this.form.elements.file).focus();
    }

    // Clicks a button of all failed uploads. Copies the list first, because a click may change which have failed.
    clickAll(name) {
      for (const button of [...this.list.querySelectorAll(`.is-failed .${name}:not([hidden])`)]) button.click();
    }

    updateBulkButtons() {
      this.bulkButtons.hidden = this.list.querySelectorAll(".is-failed").length < 2;
      const retryButton = this.list.querySelector(".is-failed .upload-retry:not([hidden])");
      this.bulkButtons.querySelector(".upload-retry").hidden = !retryButton;
    }

    showStatus(upload, text, isFailure = false) {
      upload.row.querySelector("progress").hidden = isFailure;
      this.setText(upload, text, isFailure);
    }

    setText(upload, text, isFailure) {
      const status = upload.row.querySelector(".upload-status");
      status.textContent = text;
      status.classList.toggle("error-text", isFailure);
      upload.row.classList.toggle("is-failed", isFailure);
      upload.row.querySelector(".buttons").hidden = !isFailure;
      this.updateBulkButtons();
    }
  }

  // The Replace link of each document in the list lets its user choose the file immediately.
  function enableReplacing(queue) {
    const fileInput = document.createElement("input");
    fileInput.type = "file";
    fileInput.accept = queue.form.elements.file.accept;
    let replaceUrl = null;
    fileInput.addEventListener("change", () => queue.add(fileInput.files, replaceUrl));
    document.addEventListener("click", (event) => {
      const link = event.target.closest(".replace-document");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      replaceUrl = link.dataset.url;
      fileInput.value = ""; // so that the same file can be chosen again
      fileInput.click();
    });
  }

  function enableUploads(form) {
    const queue = new UploadQueue(form);
    const dropZone = form.querySelector(".drop-zone");
    const fileInput = form.querySelector("[type=file]");
    fileInput.multiple = true; // a form without scripts sends one file
    fileInput.addEventListener("change", () => {
      queue.add(fileInput.files);
      fileInput.value = ""; // so that the same file can be chosen again
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    enableReplacing(queue);
    // A file that is dropped outside the zone would replace the page.
    for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
    dropZone.addEventListener("dragover", () => dropZone.classList.add("is-dragged-over"));
    for (const name of ["dragleave", "drop"]) dropZone.addEventListener(name, () => dropZone.classList.remove("is-dragged-over"));
    dropZone.addEventListener("drop", (event) => queue.add(event.dataTransfer.files));
    window.addEventListener("beforeunload", (event) => queue.activeUploads.size > 0 && event.preventDefault());
  }

  // Replaces the browser's own dialog: it is read out, has two named buttons, and Escape cancels.
  const confirmation = document.getElementById("confirmation");
  document.addEventListener("htmx:confirm", (event) => {
    if (!event.detail.question) return;
    event.preventDefault();
    document.getElementById("confirmation-text").textContent = event.detail.question;
    const [verb] = event.detail.question.split(" ");
    const button = confirmation.querySelector("[value=yes]");
    button.textContent = verb;
    button.classList.toggle("danger", verb === "Delete");
    confirmation.returnValue = "no";
    confirmation.onclose = () => {
      if (confirmation.returnValue === "yes") event.detail.issueRequest(true);
      else htmx.trigger(document.body, "uploaded"); // makes up for refreshes while the dialog was open
    };
    confirmation.showModal();
  });

  // A list must not be refreshed while its user decides about a deletion, or while a request of the user is pending,
  // whose response replaces an element of it. A page in the background does not poll.
  let pendingUserRequests = 0;
  const triggerName = (event) => event.detail.requestConfig.triggeringEvent?.type ?? "poll";
  const isRefresh = (event) => ["poll", "uploaded"].includes(triggerName(event));
  document.addEventListener("htmx:beforeRequest", (event) => {
    const isBackgroundPoll = document.hidden && triggerName(event) === "poll";
    if (!isRefresh(event)) {
      pendingUserRequests += 1;
      event.detail.xhr.addEventListener("loadend", () => (pendingUserRequests -= 1));
    } else if (confirmation.open || pendingUserRequests > 0 || isBackgroundPoll) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (isRefresh(event) && (confirmation.open || pendingUserRequests > 0)) event.detail.shouldSwap = false;
  });

  // A file that is uploaded during a refresh may be missing in the response, which removes the element that would refresh.
  document.addEventListener("htmx:beforeRequest", (event) => (event.detail.xhr.uploadCountBefore = uploadCount));
  document.addEventListener("htmx:afterSettle", (event) => {
    const { target, xhr } = event.detail;
    if (target?.id === "documents" && xhr.uploadCountBefore < uploadCount) htmx.trigger(document.body, "uploaded");
  });

  // After a deletion by keyboard, the focus moves to the title, because the button is gone.
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target?.id !== "documents" || isRefresh(event)) return;
    if (document.activeElement === document.body) document.getElementById("documents-title").focus();
  });

  const requestError = document.getElementById("request-error");
  const showRequestError = (text) => {
    requestError.textContent = text;
    requestError.hidden = !text;
  };
  document.addEventListener("htmx:sendError", () => showRequestError("The service is not responding. Try again later."));
  document.addEventListener("htmx:responseError", (event) => {
    const { xhr } = event.detail;
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    showRequestError(parseBody(xhr).errors?.[0]?.message || page.querySelector("h1")?.textContent || "The request failed.");
  });
  document.addEventListener("htmx:afterSwap", (event) => isRefresh(event) || showRequestError(""));

  // Adds an empty row below the others. `prepare` completes each row.
  function enableRows(listId, buttonId, prepare = () => {}) {
    const list = document.getElementById(listId);
    if (!list) return;
    for (const row of list.children) prepare(row);
    const button = document.getElementById(buttonId);
    button.hidden = false;
    button.addEventListener("click", () => {
      const row = list.lastElementChild.cloneNode(true);
      for (const input of row.querySelectorAll("input")) input.value = "";
      for (const select of row.querySelectorAll("select")) select.selectedIndex = 0;
      if (row.hasAttribute("aria-label")) row.setAttribute("aria-label", `Field ${list.children.length + 1}`);
      prepare(row);
      list.append(row);
      row.firstElementChild.focus();
    });
  }

  // The field of a condition decides which values are offered.
  function offerValues(row) {
    const [key, operator, value] = row.children;
    const update = () => {
      const known = [...document.querySelectorAll("datalist[data-field]")].find((list) => list.dataset.field === key.value);
      value.setAttribute("list", key.value && known ? known.id : "");
      value.hidden = ["ISEMPTY", "ISNOTEMPTY"].includes(operator.value);
    };
    key.addEventListener("change", update);
    operator.addEventListener("change", update);
    update();
  }

  enableRows("filter-rows", "add-filter-row", offerValues);
  enableRows("metadata-rows", "add-metadata-row");

  const form = document.getElementById("upload");
  if (form) enableUploads(form);
}
