/**
 * Reads `WWW-Authenticate` (RFC 9110, 11.6.1): a list of challenges, each with a scheme and parameters.
 *
 * The grammar is ambiguous to a splitter: commas separate challenges and parameters, and a quoted string may contain
 * both, as in `Basic realm="Bearer scope=\"a\", x"`. This reader goes through the text once, token by token, and never
 * fails: text that is not part of the grammar is skipped.
 */

/** One challenge. */
export interface Challenge {
  /** The scheme in lower case. */
  readonly scheme: string
  /** The parameters by their name in lower case. The first of a repeated parameter counts. */
  readonly params: { readonly [name: string]: string | undefined }
  /** The credentials in the form of one token (`Negotiate YII…=`), in place of parameters. */
  readonly token68?: string
}

const token = /[!#$%&'*+\-.^_`|~0-9A-Za-z]+/y
const token68 = /[-._~+/0-9A-Za-z]+=*(?=[ \t]*(?:,|$))/y

class Reader {
  at = 0
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  skip(characters: string): void {
    while (this.at < this.text.length && characters.includes(this.text.charAt(this.at))) this.at++
  }

  match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at
    const match = pattern.exec(this.text)
    if (match === null) return undefined
    this.at = pattern.lastIndex
    return match[0]
  }

  /** A token, or a quoted string without its quotes and escapes. A string without an end lasts to the end. */
  value(): string {
    if (this.text.charAt(this.at) !== "\"") return this.match(token) ?? ""
    let from = ++this.at
    let value = ""
    for (; this.at < this.text.length && this.text.charAt(this.at) !== "\""; this.at++) {
      if (this.text.charAt(this.at) !== "\\") continue
      value += this.text.slice(from, this.at)
      from = ++this.at
    }
    value += this.text.slice(from, this.at)
    this.at++
    return value
  }

  /** The name of a parameter, if `name` is one: `=` follows, and it is not the padding of a `token68`. */
  isParameter(): boolean {
    const start = this.at
    this.skip(" \t")
    if (this.text.charAt(this.at) === "=" && this.text.charAt(this.at + 1) !== "=") return true
    this.at = start
    return false
  }
}

/** Reads the values of the header, which may be joined with commas. `undefined` has no challenges. */
export const parse = (header: string | undefined): ReadonlyArray<Challenge> => {
  if (header === undefined) return []
  const challenges: Array<{ scheme: string; params: Record<string, string>; token68?: string }> = []
  const reader = new Reader(header)
  while (reader.at < header.length) {
    reader.skip(" \t,")
    const name = reader.match(token)
    if (name === undefined) {
      reader.at++
      continue
    }
    const current = challenges.at(-1)
    if (current !== undefined && reader.isParameter()) {
      reader.at++
      reader.skip(" \t")
      const value = reader.value()
      current.params[name.toLowerCase()] ??= value
      continue
    }
    // Without a prototype, a parameter that is named `__proto__` or `constructor` is one like any other.
    const challenge: typeof challenges[number] = { scheme: name.toLowerCase(), params: Object.create(null) }
    challenges.push(challenge)
    const end = reader.at
    reader.skip(" \t")
    if (reader.at === end) continue
    const start = reader.at
    const single = reader.match(token68)
    // `scheme token` is a token68, and so is `scheme token==`; `scheme name=` with a comma behind it is not a parameter.
    if (single !== undefined) challenge.token68 = single
    else reader.at = start
  }
  return challenges
}

/** The part of a refusal that OAuth reads (RFC 6750, 3; RFC 9449, 7.1; RFC 9728, 5.1). */
export interface OAuthChallenge {
  readonly error: string | undefined
  /** The scopes of the challenge; `undefined` if it names none. */
  readonly scope: string | undefined
  readonly resourceMetadata: string | undefined
  /** Whether the server accepts tokens that are bound to a key. */
  readonly dpop: boolean
}

/** A challenge that says nothing. */
export const noChallenge: OAuthChallenge = {
  error: undefined,
  scope: undefined,
  resourceMetadata: undefined,
  dpop: false
}

/**
 * The challenge of the schemes `Bearer` and `DPoP`. A server that offers both may put the parameters in either one, so
 * the first value of each parameter counts. An error counts before its absence: it belongs to the token that was sent.
 */
export const oauthChallenge = (header: string | undefined): OAuthChallenge => {
  const all = parse(header).filter(({ scheme }) => scheme === "bearer" || scheme === "dpop")
  const first = (name: string): string | undefined => all.find(({ params }) => params[name] !== undefined)?.params[name]
  return {
    error: first("error"),
    scope: first("scope"),
    resourceMetadata: first("resource_metadata"),
    dpop: all.some(({ scheme }) => scheme === "dpop")
  }
}
