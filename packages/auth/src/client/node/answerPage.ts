/**
 * The pages that a browser shows when a person comes back from an authorization server. They are plain HTML without
 * scripts, contain nothing of the request, and load nothing.
 */
import { createHash } from "node:crypto"
import { escapeHtml } from "../../shared/web.ts"

/**
 * The subject of a page. `received`: the answer arrived, and the program continues with it. `refused`: the answer is an
 * error. `unknown`: the request is not an answer that the program waits for.
 */
export type Kind = "received" | "refused" | "unknown"

const style = `
:root { color-scheme: light dark; --text: #1c1f26; --muted: #555c68; --ground: #f4f5f7; --card: #fff; --line: #d9dce2 }
@media (prefers-color-scheme: dark) {
  :root { --text: #eceef2; --muted: #a7adb9; --ground: #14161a; --card: #1e2127; --line: #343943 }
}
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--ground);
  color: var(--text); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
main { max-width: 30rem; width: 100%; padding: 2rem 2.25rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .75rem; border-top: .25rem solid var(--mark) }
.received { --mark: #2e8b57 } .refused { --mark: #c4532d } .unknown { --mark: #8a919e }
h1 { margin: 0 0 .75rem; font-size: 1.35rem; line-height: 1.3; overflow-wrap: anywhere }
p { margin: 0; color: var(--muted); overflow-wrap: anywhere } p + p { margin-top: .5rem }
`

const texts = (name: string): Readonly<Record<Kind, readonly [title: string, text: string]>> => ({
  received: ["Sign-in received", `${name} completes it now, and shows whether you are signed in.`],
  refused: ["You are not signed in", `The sign-in was refused or cancelled. ${name} shows the reason.`],
  unknown: ["No sign-in uses this page", `If you are not signed in yet, start again in ${name}.`]
})

/** The HTML of a page. `name` is the program that the person signs in with. */
export const render = (kind: Kind, name: string): string => {
  const [title, text] = texts(escapeHtml(name))[kind]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body class="${kind}">
<main>
<h1>${title}</h1>
<p>${text}</p>
${kind === "unknown" ? "" : "<p>You may close this page.</p>\n"}</main>
</body>
</html>
`
}

/** The headers of each page. The address of the page contains the authorization code, so no other site may learn it. */
export const makeHeaders = (): Readonly<Record<string, string>> => {
  const styleHash = createHash("sha256").update(style).digest("base64")
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:; base-uri 'none'; ` +
      "form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    connection: "close"
  }
}
