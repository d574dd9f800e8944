/**
 * The sign-in of a person at a proxy: the consent of this server first, then the upstream, then back to the client.
 *
 * Every request of it needs the cookie of the browser that began it. So a person who is sent to the upstream by the
 * consent of another person returns without the cookie, and nothing is granted.
 */
import * as Effect from "effect/Effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as oauth from "oauth4webapi"
import type { Provider } from "oidc-provider"
import { isDocumentId } from "./clientDocuments.ts"
import {
  clientNameOf,
  denied,
  describeRedirect,
  grantRequest,
  interactionOf,
  interactionPath,
  requestedScopes,
  type RequestParams,
  scopeToShow
} from "./engine.ts"
import { consentForm, html, readForm, scopeList, sendMessage, sendPage } from "./html.ts"
import type { Options } from "./proxyOptions.ts"
import type { Resolved } from "./resolveOptions.ts"
import type { SealedStore } from "./sealedRecords.ts"
import type { Sealing } from "./sealing.ts"
import type { Upstream, UpstreamTokens } from "./upstream.ts"

export interface SignInOptions {
  readonly provider: Provider
  readonly store: SealedStore
  readonly sealing: Sealing
  readonly upstream: Upstream
  readonly options: Options
  readonly resolved: Resolved
  /** Stores a grant, with the tokens of the upstream and the metadata of the client. */
  readonly begin: (
    grant: NewGrant,
    tokens: UpstreamTokens,
    client: Readonly<Record<string, unknown>>
  ) => Effect.Effect<void, unknown>
}

/** The grant of a person to a client. */
export interface NewGrant {
  readonly id: string
  readonly accountId: string
  readonly clientId: string
  readonly scopes: ReadonlyArray<string>
}

/** A sign-in that was sent to the upstream. */
interface Begun {
  readonly uid: string
  readonly verifier: string
}

const isBegun = (value: unknown): value is Begun =>
  typeof value === "object" && value !== null && "uid" in value && "verifier" in value

const expired = "It has expired, was finished already, or another browser began it. Start again in the application."

/** Makes the functions that answer the pages of a sign-in. */
export const makeSignIn = ({ begin, options, provider, resolved, sealing, store, upstream }: SignInOptions) => {
  const { resource, scopes, upstream: { issuer, name: upstreamName, scope: upstreamScope = "sign-in only" } } = options
  const { serverName } = resolved
  const run = Effect.runPromise

  const consent = async (response: ServerResponse, uid: string, params: RequestParams): Promise<void> => {
    const name = await clientNameOf(provider, params.client_id)
    const document = isDocumentId(params.client_id) ? new URL(params.client_id).host : undefined
    const { local, where } = describeRedirect(params.redirect_uri)
    const scope = await scopeToShow(provider, params)
    const published = document === undefined
      ? html`<p class="note">The application registered itself, under a name that it chose itself: nobody has checked the name.</p>`
      : html`<p class="note">The application is described at <b>${document}</b>.</p>`
    // A name in a document proves nothing about the program at a port of this computer.
    const warning = document !== undefined && local
      ? html`<p class="warn">Any program on this computer can use this description. Go on only if you have just started the sign-in yourself.</p>`
      : undefined
    sendPage(
      response,
      200,
      `Allow ${name}?`,
      html`<h1>${name} asks for access to ${serverName}</h1>
<p>Allow it only if you started this sign-in yourself, in an application that you trust.</p>
<dl><dt>It will be allowed</dt><dd>${scopeList(scope, scopes)}</dd>
<dt>With your account at ${upstreamName}</dt><dd>${upstreamScope}</dd>
<dt>Then you go to</dt><dd><code>${where}</code>${local ? ", a program on this computer" : ""}</dd></dl>
${published}${warning}
${consentForm(interactionPath + uid, "csrf", sealing.sign(uid))}
<p class="note">If you allow it, you sign in at ${upstreamName} next.</p>`
    )
  }

  /** Answers `/interaction/<uid>`: the page of the consent, and the answer to it. */
  const interaction = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { finish, isRequested, params, uid } = await interactionOf(provider, request, response)
    if (!isRequested) return sendMessage(response, 403, "This sign-in cannot go on", expired)
    if (request.method === "GET") return consent(response, uid, params)
    if (request.method !== "POST") {
      return sendMessage(response, 405, "Method not allowed", "Open this page in a browser.")
    }
    const form = await readForm(request)
    if (!sealing.isSigned(uid, form.get("csrf") ?? "")) {
      return sendMessage(response, 403, "This form was not sent by this page", expired)
    }
    if (form.get("answer") !== "allow") return finish(denied)
    // Not earlier: before the consent there is no state that an attacker could use.
    const state = oauth.generateRandomState()
    const verifier = oauth.generateRandomCodeVerifier()
    const expiresAt = Date.now() + resolved.signInSeconds * 1000
    const url = await run(upstream.authorizationUrl(state, verifier))
    await run(store.set(`State ${state}`, { uid, verifier } satisfies Begun, { expiresAt }))
    response.writeHead(303, { location: url.href, "cache-control": "no-store", "referrer-policy": "no-referrer" }).end()
  }

  /** The sign-in that a state belongs to, without using it up. */
  const signInOf = (state: string | null): Effect.Effect<string | undefined, unknown> =>
    state === null
      ? Effect.succeed(undefined)
      : Effect.map(store.get(`State ${state}`), (entry) => isBegun(entry?.value) ? entry.value.uid : undefined)

  /** Answers the callback of the upstream. */
  const callback = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const query = new URL(request.url ?? "/", "http://localhost").searchParams
    const state = query.get("state") ?? ""
    const { finish, params, uid } = await interactionOf(provider, request, response)
    // Once: of two requests with the same state, on two instances, one gets it.
    const begun = await run(store.take(`State ${state}`))
    if (!isBegun(begun) || begun.uid !== uid) {
      return sendMessage(response, 403, "This sign-in cannot go on", expired)
    }
    if (query.has("error")) {
      // The upstream's description may be anybody's text, and is not repeated.
      return finish({ ...denied, error_description: "the sign-in was not completed" })
    }
    const { user, ...tokens } = await run(upstream.exchange(query, state, begun.verifier))
    const accountId = `${issuer} ${user.id}`
    const grantId = await grantRequest(provider, params, accountId, { scopes, defaultResource: resource })
    const client = (await provider.Client.find(params.client_id))?.metadata() ?? {}
    await run(
      begin({ id: grantId, accountId, clientId: params.client_id, scopes: requestedScopes(params, scopes) }, tokens, {
        ...client
      })
    )
    await finish({ login: { accountId, remember: false }, consent: { grantId } })
  }

  return { interaction, callback, signInOf, expired }
}
