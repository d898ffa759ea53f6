// In charge of running a certified OpenID provider for tests and for a first look: one process, several realms.
//
//   node provider.mjs '{"port": 0, "realms": [{"name": "main", "path": "/realms/main"}], "people": […], …}'
//
// Prints one line of JSON when it is ready. Ends with its standard input, so it never outlives whoever started it.
// POST /control with the header X-Control, when `control` is configured:
//   {"do": "register", "clients": […]}             the clients of all realms
//   {"do": "rotate", "realm": …, "overlap": true}   new signing keys; answers their kids
//   {"do": "end_sessions", "realm": …, "login": …}  with back-channel logout; answers the clients that were told

import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

// The library names newer releases; all that it really misses in this one:
URL.parse ??= (text, base) => { try { return new URL(text, base); } catch { return null; } };
console.info = console.warn = () => {}; // it comments on its configuration

const { Realm } = await import('./realm.mjs');
const pages = await import('./pages.mjs');

const LOGOUT = '/protocol/openid-connect/logout';
const settings = JSON.parse(process.argv[2]);
const tls = settings.tls && { cert: readFileSync(settings.tls.cert), key: readFileSync(settings.tls.key) };
const realms = [];

async function read(request) {
  let body = '';
  for await (const part of request) {
    body += part;
    if (body.length > 1_000_000) throw new Error('too much');
  }
  return body;
}

function send(response, status, body, type = 'text/html; charset=utf-8') {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
  response.end(body);
}

async function control(request, response) {
  if (!settings.control || request.headers['x-control'] !== settings.control) return send(response, 404, '');
  const asked = JSON.parse(await read(request));
  const realm = realms.find(({ options }) => options.name === asked.realm);
  let answer = null;
  if (asked.do === 'register') realms.forEach((each) => each.register(asked.clients));
  if (asked.do === 'rotate') {
    realm.rotate(asked.overlap);
    answer = realm.keys.map(({ kid }) => kid);
  }
  if (asked.do === 'end_sessions') answer = await realm.endSessions(asked.login);
  return send(response, 200, JSON.stringify(answer), 'application/json');
}

async function interact(realm, request, response) {
  const { prompt, params } = await realm.provider.interactionDetails(request, response);
  if (prompt.name !== 'login') throw new Error(`nobody is asked for ${prompt.name} here`);
  const shown = { realm: realm.options.name, login: params.login_hint, people: settings.shows_people ? realm.people : [] };
  if (request.method === 'GET') return send(response, 200, pages.signIn(shown));
  const form = new URLSearchParams(await read(request));
  const who = realm.find(form.get('login'));
  if (!who || who.password !== form.get('password')) {
    return send(response, 401, pages.signIn({ ...shown, login: form.get('login'), wrong: true }));
  }
  return realm.provider.interactionFinished(request, response, { login: { accountId: who.sub } });
}

async function answer(request, response) {
  const { pathname } = new URL(request.url, 'http://any');
  if (pathname === '/control') return control(request, response);
  // The longest path first: the plain issuer, whose path is empty, takes what is left.
  const realm = realms.find(({ path }) => pathname.startsWith(`${path}/`));
  if (!realm) return send(response, 404, pages.error({ error: 'no such realm' }));
  const rest = pathname.slice(realm.path.length);
  if (rest.startsWith('/interaction/')) return interact(realm, request, response);
  if (realm.options.hides_discovery && rest.startsWith('/.well-known/')) return send(response, 404, '');
  // The standard wants POST there too; the library has it only with cookies that a browser refuses over http.
  if (request.method === 'POST' && rest === LOGOUT) {
    request.url = `${pathname}?${await read(request)}`;
    request.method = 'GET';
  }
  request.originalUrl = request.url; // the library takes the path it is mounted at from the two
  request.url = request.url.slice(realm.path.length);
  return realm.answer(request, response);
}

const server = (tls ? https : http).createServer(tls ?? {}, (request, response) => {
  answer(request, response).catch((wrong) => {
    if (!response.headersSent) send(response, 400, pages.error({ error: wrong.message }));
  });
});

server.listen(settings.port ?? 0, settings.host ?? '127.0.0.1', () => {
  const base = `${tls ? 'https' : 'http'}://${settings.host ?? '127.0.0.1'}:${server.address().port}`;
  for (const options of settings.realms) realms.push(new Realm(base, options, settings.people));
  realms.sort((one, other) => other.path.length - one.path.length);
  realms.forEach((realm) => realm.register(settings.clients ?? []));
  process.stdout.write(`${JSON.stringify({ url: base })}\n`);
});
server.on('error', (wrong) => {
  process.stderr.write(`${wrong.message}\n`);
  process.exit(1);
});

process.stdin.on('end', () => process.exit(0)).resume();
