/** The pages that a person sees, of one look and without scripts, and the forms that a person sends. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { printableLines } from "@skein/protocol/Text"
import { escapeHtml } from "../shared/web.ts"

/** HTML that is not escaped again by `html`. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = Html | string | ReadonlyArray<Html> | undefined

/** The longest text on a page, in characters. The rest is cut off. */
const maxTextChars = 4_096

const render = (part: Part): string => {
  if (part === undefined) return ""
  // A name or an address of a client with characters that change the direction of writing could look like another.
  if (typeof part === "string") return escapeHtml(printableLines(part, maxTextChars))
  return part instanceof Html ? part.text : part.map(({ text }) => text).join("")
}

/** A template of HTML. Strings in it are escaped, and so are characters that are invisible or change the direction of writing. */
export const html = (texts: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html =>
  new Html(texts.reduce((all, text, index) => all + render(parts[index - 1]) + text))

const style = `
:root { color-scheme: light dark; --line: #d0d7de; --quiet: #57606a; --accent: #0b6bcb; --button: #0b6bcb; --back: #f6f8fa; --card: #fff; --text: #1f2328 }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --quiet: #9198a1; --accent: #4493f8; --button: #1f6feb; --back: #0d1117; --card: #151b23; --text: #f0f6fc } }
* { box-sizing: border-box }
body { margin: 0; padding: 6vh 16px; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 460px; margin: 0 auto; padding: 28px 32px; background: var(--card); border: 1px solid var(--line); border-radius: 12px }
h1 { margin: 0 0 12px; font-size: 22px; line-height: 1.3; overflow-wrap: anywhere }
p { margin: 0 0 14px; overflow-wrap: anywhere }
dl { margin: 0 0 18px } dt { color: var(--quiet); font-size: 14px } dd { margin: 0 0 8px; overflow-wrap: anywhere }
ul { margin: 0; padding-left: 20px }
code { font: 14px ui-monospace, monospace }
.note { color: var(--quiet); font-size: 14px }
main > :last-child, main > :last-child > :last-child { margin-bottom: 0 }
.warn { border-left: 3px solid #d4a72c; padding-left: 12px }
form { display: grid; gap: 10px; margin: 0 0 18px } form.row { grid-template-columns: 1fr 1fr }
button { padding: 10px 16px; border: 1px solid var(--line); border-radius: 8px; background: transparent; color: inherit; font: inherit; text-align: left; cursor: pointer }
form.row button { text-align: center }
button:hover { border-color: var(--accent) }
button:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
button.main { background: var(--button); border-color: var(--button); color: #fff; font-weight: 600 }
button small { display: block; color: var(--quiet) }
a { color: var(--accent) }`

/**
 * The headers of a page that a person answers. They forbid frames and the loading of other files, and no request has a
 * `Referer`.
 *
 * There is no `form-action`: browsers apply it to the redirect that follows the form too, which leads to the client or
 * the upstream.
 */
export const pageHeaders: Readonly<Record<string, string>> = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'",
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer"
}

/** A whole page. */
export const page = (title: string, body: Html): string =>
  html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><title>${title}</title><style>${new Html(
    style
  )}</style></head>
<body><main>
${body}
</main></body>
</html>
`.text

/** Answers with a page. */
export const sendPage = (response: ServerResponse, status: number, title: string, body: Html): void => {
  response.writeHead(status, pageHeaders).end(page(title, body))
}

/** Answers with a page of one message. */
export const sendMessage = (response: ServerResponse, status: number, title: string, message: string): void =>
  sendPage(response, status, title, html`<h1>${title}</h1><p>${message}</p>`)

/** The scopes that a request asks for, of those that a server offers, for the person who allows them. */
export const scopeList = (requested: string | undefined, offered: ReadonlyArray<string>): Html => {
  const all = (requested ?? "").split(" ")
  const items = offered.filter((one) => all.includes(one)).map((one) => html`<li>${one}</li>`)
  if (items.length === 0) items.push(html`<li>to use the server in your name</li>`)
  if (all.includes("openid")) items.push(html`<li>to know who you are</li>`)
  // Otherwise the person would not know that the access continues after the program was closed.
  if (all.includes("offline_access")) items.push(html`<li>to stay signed in until you sign out of it</li>`)
  return html`<ul>${items}</ul>`
}

/** The form of a person who allows a request or denies it. It sends `value` too. */
export const consentForm = (action: string, name: string, value: string): Html =>
  html`<form method="post" action="${action}" class="row"><input type="hidden" name="${name}" value="${value}">
<button class="main" name="answer" value="allow">Allow</button><button name="answer" value="deny">Deny</button></form>`

/** A form is longer than this server reads, or is not a form. */
export class FormError extends Error {
  override readonly name = "FormError"
}

const maxFormBytes = 16_384

/** Reads a form of at most 16 KiB. */
export const readForm = async (request: IncomingMessage): Promise<URLSearchParams> => {
  if (!(request.headers["content-type"] ?? "").startsWith("application/x-www-form-urlencoded")) {
    throw new FormError("expected a form (application/x-www-form-urlencoded)")
  }
  const chunks: Array<Buffer> = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > maxFormBytes) throw new FormError(`the form is longer than ${maxFormBytes} bytes`)
    chunks.push(chunk)
  }
  return new URLSearchParams(Buffer.concat(chunks).toString())
}
