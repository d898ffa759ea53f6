// The pages of the provider: sign-in form, sign-out confirmation and errors, without scripts.

const escape = (text) => String(text ?? '').replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const STYLE = `
  body { font: 16px/1.5 system-ui, sans-serif; background: #f4f1ec; color: #222; margin: 0; }
  main { max-width: 22rem; margin: 4rem auto; padding: 2rem; background: #fff; border-radius: .5rem; }
  label { display: block; margin-top: 1rem; }
  input, button { font: inherit; width: 100%; padding: .5rem; box-sizing: border-box; }
  button { margin-top: 1.5rem; background: #7a4b12; color: #fff; border: 0; border-radius: .25rem; cursor: pointer; }
  .wrong { color: #a00; }`;

const page = (title, body) => `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>${escape(title)}</title><style>${STYLE}</style></head>
<body><main><h1>${escape(title)}</h1>${body}</main></body></html>`;

export const signIn = ({ realm, login, hasFailed, people }) => page('Identity provider', `
  <p>Realm <b>${escape(realm)}</b></p>
  ${hasFailed ? '<p class="wrong" role="alert">Incorrect login or password.</p>' : ''}
  <form method="post">
    <label>Login <input name="login" value="${escape(login)}" autocomplete="username" autofocus></label>
    <label>Password <input name="password" type="password" autocomplete="current-password"></label>
    <button>Continue</button>
  </form>
  ${people.length ? `<p>For example ${people.map((user) => `<b>${escape(user.login)}</b>`).join(', ')}.</p>` : ''}`);

export const signOut = (form) => page('Sign out?', `${form}
  <button form="op.logoutForm" name="logout" value="yes" autofocus>Sign out</button>`);

export const signedOut = () => page('You are signed out', '<p>You can close this window.</p>');

export const error = (details) => page('Error', Object.entries(details)
  .map(([name, value]) => `<p><b>${escape(name)}</b>: ${escape(value)}</p>`).join(''));
