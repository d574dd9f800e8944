/** The pages of the development server, and the answers that people give there. */
import { clip } from "@skein/protocol/Text"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Provider } from "oidc-provider"
import {
  clientNameOf,
  denied,
  describeRedirect,
  grantRequest,
  interactionOf,
  interactionPath,
  type RequestParams,
  scopeToShow
} from "../proxy/engine.ts"
import type { User } from "./devServerOptions.ts"
import { consentForm, html, readForm, scopeList, sendMessage, sendPage } from "../proxy/html.ts"

export interface PageOptions {
  readonly issuer: string
  readonly users: ReadonlyArray<User>
  readonly scopes: ReadonlyArray<string>
  readonly defaultResource: string | undefined
  readonly signInAs: string | undefined
}

const note = () =>
  html`<p class="note">This is a development server on your computer. It has no passwords and protects nothing.</p>`

const describeUser = ({ claims }: User): string =>
  [claims?.["name"], claims?.["email"]].filter((one) => typeof one === "string").join(" · ")

/** The start page, for people who open the issuer in a browser. */
export const sendHome = (response: ServerResponse, { issuer, scopes, users }: PageOptions): void =>
  sendPage(
    response,
    200,
    "Development authorization server",
    html`<h1>Development authorization server</h1>
<p>Applications send people here to sign in. There is nothing to do on this page.</p>
<dl><dt>Issuer</dt><dd><code>${issuer}</code></dd>
<dt>Users</dt><dd>${users.map(({ name }) => name).join(", ")}</dd>
<dt>Scopes</dt><dd>${scopes.join(", ")}</dd>
<dt>Metadata</dt><dd><a href="/.well-known/oauth-authorization-server">oauth-authorization-server</a> · <a href="/.well-known/openid-configuration">openid-configuration</a></dd></dl>
${note()}`
  )

/** Answers requests below the path of interactions. */
export const answerPage = async (
  provider: Provider,
  options: PageOptions,
  request: IncomingMessage,
  response: ServerResponse
): Promise<void> => {
  const { finish, isRequested, params, uid } = await interactionOf(provider, request, response)
  const path = interactionPath + uid
  if (!isRequested) {
    return sendMessage(response, 403, "Another browser began this sign-in", "Start again in the application.")
  }
  const agree = async (accountId: string) => {
    const grantId = await grantRequest(provider, params, accountId, options)
    return finish({ login: { accountId, remember: false }, consent: { grantId } })
  }
  const clientName = await clientNameOf(provider, params.client_id)
  const signIn = (wrong: string | undefined) =>
    sendPage(
      response,
      wrong === undefined ? 200 : 400,
      "Sign in",
      html`<h1>Sign in</h1>
${wrong === undefined ? undefined : html`<p class="warn">There is no user ${clip(wrong)} here.</p>`}
<p>${clientName} asks you to sign in. Who are you?</p>
<form method="post" action="${path}">${
        options.users.map((user) =>
          html`<button name="login" value="${user.name}">${user.name}<small>${describeUser(user)}</small></button>`
        )
      }</form>
${note()}`
    )
  const scope = await scopeToShow(provider, params)
  const { login_hint: hint } = params
  const known = (name: string | null | undefined) => options.users.find((user) => user.name === name)
  if (options.signInAs !== undefined) return agree(options.signInAs)
  if (request.method === "POST") {
    const form = await readForm(request)
    const user = known(form.get("login"))
    const answer = form.get("answer")
    if (answer === "deny") return finish(denied)
    if (user === undefined) return signIn(form.get("login") ?? "")
    if (answer === "allow") return agree(user.name)
    return consent(response, path, clientName, { ...params, scope }, options, user.name)
  }
  return known(hint) === undefined
    ? signIn(undefined)
    : consent(response, path, clientName, { ...params, scope }, options, hint!)
}

const consent = (
  response: ServerResponse,
  path: string,
  clientName: string,
  params: RequestParams,
  options: PageOptions,
  login: string
): void => {
  const { local, where } = describeRedirect(params.redirect_uri)
  const resource = params.resource ?? options.defaultResource
  sendPage(
    response,
    200,
    `Allow ${clientName}?`,
    html`<h1>${clientName} asks for access</h1>
<p>You are signed in as <b>${login}</b>. <a href="${path}">Use another user</a></p>
<dl>${resource === undefined ? undefined : html`<dt>Server</dt><dd><code>${[resource].flat().join(", ")}</code></dd>`}
<dt>It will be allowed</dt><dd>${scopeList(params.scope, options.scopes)}</dd>
<dt>Then you go to</dt><dd><code>${where}</code>${local ? ", a program on this computer" : ""}</dd></dl>
${consentForm(path, "login", login)}
${note()}`
  )
}
