/** A browser of forms, cookies and redirects, for `TestUser`. It has no scripts and visits loopback only. */
import { cut } from "@skein/protocol/Text"
import { isLoopback } from "@skein/protocol/Hostname"

/** The pages and redirects of one visit. A visit with more fails. */
const maxPages = 20

export interface BrowserOptions {
  readonly name: string
  readonly password: string
  readonly answer: "allow" | "deny"
}

interface Page {
  readonly url: URL
  readonly status: number
  readonly html: string
}

interface VisitOptions {
  readonly signal: AbortSignal
  /** A redirect to this address, with any query, ends the visit. */
  readonly stopAt: string | undefined
  readonly fillForms: boolean
}

interface Field {
  readonly name: string
  readonly value: string
  readonly type: string
  readonly text: string
}

const unescape = (text: string): string =>
  text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(amp|lt|gt|quot|apos));/gi, (_all, decimal, hex, name: string | undefined) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal))
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
    return { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'" }[name!.toLowerCase()] ?? ""
  })

const attribute = (tag: string, name: string): string | undefined => {
  const found = new RegExp(`\\s${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s>]+))`, "i").exec(tag)
  return found === null ? undefined : unescape(found[1] ?? found[2] ?? found[3] ?? "")
}

const textOf = (html: string): string =>
  cut(
    unescape(html.replace(/<(style|script|head)[\s\S]*?<\/\1>/gi, " ").replace(/<[^>]*>/g, " ")).replace(/\s+/g, " ")
      .trim(),
    500
  )

const fieldsOf = (form: string): ReadonlyArray<Field> =>
  [...form.matchAll(/(<input\b[^>]*>)|(<button\b[^>]*>)([\s\S]*?)<\/button>/gi)].map(([, input, button, text]) => {
    const tag = input ?? button!
    return {
      name: attribute(tag, "name") ?? "",
      value: attribute(tag, "value") ?? "",
      type: (attribute(tag, "type") ?? (input === undefined ? "submit" : "text")).toLowerCase(),
      text: textOf(text ?? "")
    }
  })

const agree = /^(allow|yes|accept|approve|authorize|agree|continue|confirm|sign.?in|log.?in|submit)\b/i
const refuse = /^(deny|no|cancel|decline|reject|refuse|abort)\b/i

/** Chooses the button that a person of this name and answer would press. */
const buttonOf = (fields: ReadonlyArray<Field>, { answer, name }: BrowserOptions): Field | undefined => {
  const buttons = fields.filter(({ type }) => type === "submit")
  const says = (pattern: RegExp) => buttons.find(({ text, value }) => pattern.test(value) || pattern.test(text))
  return buttons.find(({ value }) => value === name) ??
    (answer === "deny" ? says(refuse) : says(agree)) ??
    (answer === "deny" ? says(agree) : undefined) ??
    buttons[0]
}

interface Submission {
  readonly url: URL
  readonly body: string | undefined
}

/** Fills the first form of a page, or returns `undefined` if there is none. */
const submit = (page: Page, options: BrowserOptions): Submission | undefined => {
  const found = /<form\b([^>]*)>([\s\S]*?)<\/form>/i.exec(page.html)
  if (found === null) return undefined
  const head = `<form ${found[1]!}>`
  const fields = fieldsOf(found[2]!)
  const button = buttonOf(fields, options)
  const body = new URLSearchParams()
  for (const { name, type, value } of fields) {
    if (name === "" || type === "submit" || type === "button") continue
    if (type === "password") body.set(name, options.password)
    else if ((type === "text" || type === "email") && value === "") body.set(name, options.name)
    else body.set(name, value)
  }
  if (button !== undefined && button.name !== "") body.set(button.name, button.value)
  const url = new URL(attribute(head, "action") ?? page.url.href, page.url)
  if ((attribute(head, "method") ?? "get").toLowerCase() === "post") return { url, body: body.toString() }
  url.search = body.toString()
  return { url, body: undefined }
}

/** Whether `url` is the redirect URI with parameters. */
const isAt = (url: URL, redirectUri: string): boolean => {
  const [path] = url.href.split(/[?#]/)
  const [wanted] = new URL(redirectUri).href.split(/[?#]/)
  return path === wanted
}

interface Cookie {
  readonly name: string
  readonly value: string
  readonly host: string
  readonly path: string
  readonly expiresAt: number
}

const defaultPath = (path: string): string => {
  const end = path.lastIndexOf("/")
  return end <= 0 ? "/" : path.slice(0, end)
}

const matches = (path: string, cookiePath: string): boolean =>
  path === cookiePath || (path.startsWith(cookiePath) && (cookiePath.endsWith("/") || path[cookiePath.length] === "/"))

/** The cookies of one browser, as it holds them (RFC 6265): by host and path, not by port. */
class CookieJar {
  readonly #cookies = new Map<string, Cookie>()

  /** Stores what a response of `url` set. */
  store(url: URL, lines: ReadonlyArray<string>): void {
    for (const line of lines) {
      const [pair = "", ...attributes] = line.split(";").map((part) => part.trim())
      const [name, value] = splitPair(pair)
      const values = new Map(attributes.map(splitPair).map(([key, text]) => [key.toLowerCase(), text]))
      const path = values.get("path")?.startsWith("/") ? values.get("path")! : defaultPath(url.pathname)
      const secure = values.has("secure")
      // `__Host-` binds a cookie to this host and the whole of it; `__Secure-` to https.
      if (name.startsWith("__Host-") && !(secure && path === "/" && !values.has("domain"))) continue
      if (name.startsWith("__Secure-") && !secure) continue
      const maxAge = values.get("max-age")
      const expires = values.get("expires")
      const expiresAt = maxAge !== undefined
        ? Date.now() + Number(maxAge) * 1000
        : expires !== undefined
        ? Date.parse(expires)
        : Infinity
      const key = `${url.hostname} ${path} ${name}`
      if (expiresAt <= Date.now()) this.#cookies.delete(key)
      else this.#cookies.set(key, { name, value, host: url.hostname, path, expiresAt })
    }
  }

  /** The `Cookie` header of a request to `url`, longer paths first. */
  header(url: URL): string {
    return [...this.#cookies.values()]
      .filter(({ expiresAt, host, path }) =>
        host === url.hostname && matches(url.pathname, path) && expiresAt > Date.now()
      )
      .sort((a, b) => b.path.length - a.path.length)
      .map(({ name, value }) => `${name}=${value}`)
      .join("; ")
  }
}

const splitPair = (pair: string): [string, string] => {
  const at = pair.indexOf("=")
  return at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)]
}

/** Makes a browser with an empty jar of cookies. */
export const makeBrowser = (options: BrowserOptions) => {
  const jar = new CookieJar()
  const visited: Array<string> = []
  const load = async (url: URL, body: string | undefined, signal: AbortSignal) => {
    if (url.protocol !== "http:" || !isLoopback(url.hostname)) {
      throw new Error(`a test user does not visit ${url.origin}, which is not on loopback`)
    }
    visited.push(url.origin + url.pathname)
    const cookie = jar.header(url)
    const reply = await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      redirect: "manual",
      signal,
      headers: {
        accept: "text/html,*/*;q=0.8",
        ...cookie !== "" && { cookie },
        ...body !== undefined && { "content-type": "application/x-www-form-urlencoded", origin: url.origin }
      },
      ...body !== undefined && { body }
    })
    jar.store(url, reply.headers.getSetCookie())
    const location = reply.headers.get("location")
    const html = await reply.text()
    return { page: { url, status: reply.status, html }, next: location === null ? undefined : new URL(location, url) }
  }
  return {
    visited,
    textOf,
    /** Visits an address until it ends at a page, or at a redirect to `stopAt`. */
    visit: async (start: URL, { fillForms, signal, stopAt }: VisitOptions): Promise<{ readonly ended: Page | URL }> => {
      let url = start
      let body: string | undefined
      for (let count = 0; count < maxPages; count++) {
        const { next, page } = await load(url, body, signal)
        if (next !== undefined) {
          if (stopAt !== undefined && isAt(next, stopAt)) return { ended: next }
          ;[url, body] = [next, undefined]
          continue
        }
        const form = fillForms && page.status < 400 ? submit(page, options) : undefined
        if (form === undefined) return { ended: page }
        ;({ body, url } = form)
      }
      throw new Error(
        `the visit did not end within ${maxPages} pages; the last one was ${url.origin}${url.pathname}`
      )
    }
  }
}
