// Sends the form of the page by itself after as many seconds as it says.
"use strict";
{
  const form = document.getElementById("again");
  setTimeout(() => form.submit(), 1000 * Number(form.dataset.afterS));
}
