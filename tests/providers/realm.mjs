// A realm: a certified provider whose clients and keys can change while it runs.

import { createPrivateKey, generateKeyPairSync, randomUUID } from 'node:crypto';

import Provider from 'oidc-provider';
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js';

import * as pages from './pages.mjs';

const KINDS = { rsa: ['rsa', { modulusLength: 2048 }], p256: ['ec', { namedCurve: 'P-256' }], ed: ['ed25519', {}] };
const HOUR = 3600;

// Part of each kid, so that a kid never identifies another key, even after a restart.
const START = randomUUID().slice(0, 8);

export class Realm {
  #storage = createMemoryAdapter();

  #sessions = new Map();

  #keyCount = 0;

  // options: name, path; hides_discovery; follows_scope: claims depend on the scope and come from userinfo, as in the
  // standard (otherwise `openid` yields all claims, as in Keycloak); token_auth: client authentication methods
  constructor(base, options, people) {
    Object.assign(this, { options, people, path: options.path, issuer: base + options.path, clients: [], keys: [] });
    this.rotate(false);
  }

  #newKey(kind) {
    const [type, options] = KINDS[kind];
    // Exported through PEM, because in Node 20, exporting a new key can hang during a garbage collection.
    const privateKeyEncoding = { type: 'pkcs8', format: 'pem' };
    const { privateKey } = generateKeyPairSync(type, { ...options, privateKeyEncoding });
    this.#keyCount += 1;
    const kid = `${kind}-${this.#keyCount}-${START}`;
    return { ...createPrivateKey(privateKey).export({ format: 'jwk' }), kid, use: 'sig' };
  }

  // Creates new signing keys; with overlap, the old keys stay in the set.
  rotate(hasOverlap) {
    const newKeys = Object.keys(KINDS).map((kind) => this.#newKey(kind));
    this.keys = [...newKeys, ...(hasOverlap ? this.keys : [])];
    this.rebuild();
  }

  register(clients) {
    this.clients = clients;
    this.rebuild();
  }

  // The library fixes keys and clients when a provider is created; sessions and codes remain in the storage.
  rebuild() {
    this.provider = new Provider(this.issuer, this.#configuration());
    allowInsecureImplicit(this.provider);
    this.handler = this.provider.callback();
  }

  // Ends the sessions of a user and sends back-channel logouts; returns the clients that accepted one.
  async endSessions(login) {
    const clientIds = [];
    for (const [id, session] of [...this.#sessions]) {
      if (session.accountId !== this.find(login)?.sub) continue;
      for (const [clientId, { sid }] of Object.entries(session.authorizations ?? {})) {
        const client = await this.provider.Client.find(clientId);
        if (!client?.backchannelLogoutUri) continue;
        // A client that fails does not affect the others.
        await client.backchannelLogout(session.accountId, sid).then(() => clientIds.push(clientId), () => {});
      }
      await this.#recordSessions('Session', this.#storage('Session')).destroy(id);
    }
    return clientIds;
  }

  find(login) {
    return this.people.find((user) => user.login === login);
  }

  #configuration() {
    const { follows_scope: followsScope, token_auth: tokenAuth } = this.options;
    const person = ['email', 'email_verified', 'preferred_username', 'name', 'given_name', 'family_name'];
    const roles = ['realm_access', 'resource_access', 'groups', 'roles'];
    const cookie = { httpOnly: true, sameSite: 'lax', path: this.path || '/' };
    const name = `idp${this.path.replaceAll('/', '_')}`;
    return {
      adapter: (model) => this.#recordSessions(model, this.#storage(model)),
      jwks: { keys: this.keys },
      clients: this.clients,
      routes: Object.fromEntries(Object.entries({
        authorization: 'auth', token: 'token', jwks: 'certs', userinfo: 'userinfo', end_session: 'logout',
      }).map(([route, last]) => [route, `/protocol/openid-connect/${last}`])),
      responseTypes: ['code', 'id_token', 'id_token token'],
      scopes: ['openid', 'email', 'profile', 'roles', 'offline_access'],
      claims: followsScope
        ? { openid: ['sub'], email: ['email', 'email_verified'], profile: person.slice(2), roles }
        : { openid: ['sub', ...person, ...roles], email: [], profile: [], roles: [] },
      conformIdTokenClaims: Boolean(followsScope),
      ...(tokenAuth ? { clientAuthMethods: tokenAuth } : {}),
      clientBasedCORS: () => false,
      cookies: {
        keys: ['signs the cookies of a provider for tests'],
        names: { session: `${name}_session`, interaction: `${name}_interaction`, resume: `${name}_resume` },
        long: cookie,
        short: { httpOnly: true, sameSite: 'lax' },
      },
      features: {
        devInteractions: { enabled: false },
        backchannelLogout: { enabled: true },
        rpInitiatedLogout: {
          enabled: true,
          logoutSource: (ctx, form) => { ctx.body = pages.signOut(form); },
          postLogoutSuccessSource: (ctx) => { ctx.body = pages.signedOut(); },
        },
      },
      interactions: { url: (_, { uid }) => `${this.path}/interaction/${uid}` },
      findAccount: (_, sub) => this.#account(this.people.find((user) => user.sub === sub)),
      loadExistingGrant: grantEverything,
      // The default refuses calls to a product on loopback, and its timeout of 2.5 s is too short for a busy machine.
      fetch: (url, { dispatcher, ...options }) => fetch(url, { ...options, signal: AbortSignal.timeout(20_000) }),
      renderError: (ctx, out) => { ctx.type = 'html'; ctx.body = pages.error(out); },
      ttl: {
        AccessToken: HOUR, AuthorizationCode: 60, Grant: HOUR, IdToken: HOUR, Interaction: HOUR, Session: 12 * HOUR,
      },
    };
  }

  #account(user) {
    return user && { accountId: user.sub, claims: () => claimsOf(user) };
  }

  // Records sessions when they are stored, because the library finds a session only by its cookie.
  #recordSessions(model, adapter) {
    if (model === 'Session') {
      const { upsert, destroy } = adapter;
      adapter.upsert = (id, payload, ...rest) => {
        this.#sessions.set(id, payload);
        return upsert.call(adapter, id, payload, ...rest);
      };
      adapter.destroy = (id) => {
        this.#sessions.delete(id);
        return destroy.call(adapter, id);
      };
    }
    return adapter;
  }
}

function claimsOf({ login, password, roles, client_roles: clientRoles, ...claims }) {
  return {
    preferred_username: login,
    email_verified: true,
    ...(roles ? { realm_access: { roles } } : {}),
    ...(clientRoles ? { resource_access: clientRoles } : {}),
    ...claims,
  };
}

// Grants everything, so users are not asked for consent.
async function grantEverything(ctx) {
  const { oidc: { provider, client, session, params } } = ctx;
  const known = await provider.Grant.find(session.grantIdFor(client.clientId) ?? '');
  const grant = known ?? new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope(params.scope);
  await grant.save();
  return grant;
}

// The library requires https for responses in the fragment, which a product on loopback does not have.
function allowInsecureImplicit(provider) {
  const schema = provider.Client.Schema.prototype;
  const { invalidate } = schema;
  schema.invalidate = function invalid(message, code) {
    if (code !== 'implicit-force-https' && code !== 'implicit-forbid-localhost') invalidate.call(this, message, code);
  };
}
