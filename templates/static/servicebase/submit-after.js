// Submits the form after the number of seconds in its data-after-s attribute.
"use strict";
{
  const form = document.getElementById("submit-after");
  setTimeout(() => form.submit(), 1000 * Number(form.dataset.afterS));
}
