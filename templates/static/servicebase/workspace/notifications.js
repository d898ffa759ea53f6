// A notification whose record is opened is read.

document.addEventListener("click", (event) => {
  const item = event.target.closest(".is-unread .record-link")?.closest("li");
  const form = item?.querySelector("form");
  // The browser sends a beacon even while it opens the next page.
  if (form) navigator.sendBeacon(form.action, new FormData(form));
});
