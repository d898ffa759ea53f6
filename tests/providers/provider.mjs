// Runs a certified OpenID provider for tests and for evaluation: one process, several realms.
//
//   node provider.mjs '{"port": 0, "realms": [{"name": "main", "path": "/realms/main"}], "people": […], …}'
//
// Prints one line of JSON when it is ready. Ends with its standard input, so it does not outlive its parent process.
// POST /control with the header X-Control, when `control` is configured:
//   {"do": "register", "clients": […]}              replaces the clients of all realms
//   {"do": "rotate", "realm": …, "overlap": true}   creates signing keys; returns the kids of the set
//   {"do": "end_sessions", "realm": …, "login": …}  sends back-channel logouts; returns the clients reached

import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';

// The library requires a newer Node, but uses only this function of it:
URL.parse ??= (text, base) => { try { return new URL(text, base); } catch { return null; } };
console.info = console.warn = () => {}; // the library prints warnings about its configuration

const { Realm } = await import('./realm.mjs');
const pages = await import('./pages.mjs');

const LOGOUT = '/protocol/openid-connect/logout';
const settings = JSON.parse(process.argv[2]);
const tls = settings.tls && { cert: readFileSync(settings.tls.cert), key: readFileSync(settings.tls.key) };
const realms = [];

async function readBody(request) {
  let body = '';
  for await (const part of request) {
    body += part;
    if (body.length > 1_000_000) throw new Error('the body is too large');
  }
  return body;
}

function send(response, status, body, type = 'text/html; charset=utf-8') {
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
  response.end(body);
}

async function handleCommand(request, response) {
  if (!settings.control || request.headers['x-control'] !== settings.control) return send(response, 404, '');
  const command = JSON.parse(await readBody(request));
  const realm = realms.find(({ options }) => options.name === command.realm);
  let result = null;
  if (command.do === 'register') realms.forEach((each) => each.register(command.clients));
  if (command.do === 'rotate') {
    realm.rotate(command.overlap);
    result = realm.keys.map(({ kid }) => kid);
  }
  if (command.do === 'end_sessions') result = await realm.endSessions(command.login);
  return send(response, 200, JSON.stringify(result), 'application/json');
}

async function handleInteraction(realm, request, response) {
  const { prompt, params } = await realm.provider.interactionDetails(request, response);
  if (prompt.name !== 'login') throw new Error(`the prompt ${prompt.name} is not supported`);
  const people = settings.shows_people ? realm.people : [];
  const pageValues = { realm: realm.options.name, login: params.login_hint, people };
  if (request.method === 'GET') return send(response, 200, pages.signIn(pageValues));
  const form = new URLSearchParams(await readBody(request));
  const person = realm.find(form.get('login'));
  if (!person || person.password !== form.get('password')) {
    return send(response, 401, pages.signIn({ ...pageValues, login: form.get('login'), hasFailed: true }));
  }
  return realm.provider.interactionFinished(request, response, { login: { accountId: person.sub } });
}

async function handleRequest(request, response) {
  const { pathname } = new URL(request.url, 'http://any');
  if (pathname === '/control') return handleCommand(request, response);
  // Realms are sorted by descending path length: the plain issuer, whose path is empty, handles all other paths.
  const realm = realms.find(({ path }) => pathname.startsWith(`${path}/`));
  if (!realm) return send(response, 404, pages.error({ error: 'no such realm' }));
  const localPath = pathname.slice(realm.path.length);
  if (localPath.startsWith('/interaction/')) return handleInteraction(realm, request, response);
  if (realm.options.hides_discovery && localPath.startsWith('/.well-known/')) return send(response, 404, '');
  // The standard requires POST too. The library supports it only with cookies that browsers refuse over http.
  if (request.method === 'POST' && localPath === LOGOUT) {
    request.url = `${pathname}?${await readBody(request)}`;
    request.method = 'GET';
  }
  request.originalUrl = request.url; // the library derives its mount path from the two URLs
  request.url = request.url.slice(realm.path.length);
  return realm.handler(request, response);
}

const server = (tls ? https : http).createServer(tls ?? {}, (request, response) => {
  handleRequest(request, response).catch((error) => {
    if (!response.headersSent) send(response, 400, pages.error({ error: error.message }));
  });
});

server.listen(settings.port ?? 0, settings.host ?? '127.0.0.1', () => {
  const base = `${tls ? 'https' : 'http'}://${settings.host ?? '127.0.0.1'}:${server.address().port}`;
  for (const options of settings.realms) realms.push(new Realm(base, options, settings.people));
  realms.sort((one, other) => other.path.length - one.path.length);
  realms.forEach((realm) => realm.register(settings.clients ?? []));
  process.stdout.write(`${JSON.stringify({ url: base })}\n`);
});
server.on('error', (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});

process.stdin.on('end', () => process.exit(0)).resume();
