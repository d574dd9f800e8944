/**
 * Matches a URI against the compiled plan of a template (see `UriTemplate`). There is no backtracking: each character
 * is read a constant number of times.
 */
import { decode } from "./percentEncoding.ts"

export type Operator = "" | "+" | "#" | "/" | "?" | "&"

export interface Variable {
  readonly name: string
  readonly explode: boolean
}

export interface Expression {
  readonly operator: Operator
  readonly variables: ReadonlyArray<Variable>
}

/** A literal in reading order, with its failure table for the search by Knuth, Morris and Pratt. */
export interface Literal {
  readonly text: string
  readonly borders: Uint32Array
}

/** Literals and simple expressions in reading order: from the left, or from the right. */
export type Side = ReadonlyArray<Literal | Simple>

export interface Simple {
  readonly expression: Expression
  /** Whether the expression is in a query, so that `&` also ends its value. */
  readonly inQuery: boolean
}

/** A template as three parts: read from the left, crossing segments, read from the right. */
export interface Plan {
  /** Where no expression crosses segments, this is the whole path except a literal at its end. */
  readonly left: Side
  /** The expressions that cross segments, each with the literal after it. The last one has no literal. */
  readonly middle: ReadonlyArray<{ readonly expression: Expression; readonly next: Literal | undefined }>
  readonly right: Side
  readonly query: Query | undefined
  readonly fragment: Expression | undefined
}

interface Query {
  /** The parameters by name, and whether each is a list. */
  readonly variables: ReadonlyMap<string, boolean>
  /** Whether the expression starts with `&`. */
  readonly continues: boolean
  /** The number of `&` in the literals of the template, which are before the expression. */
  readonly skip: number
}

/** Makes a literal with its failure table. */
export const makeLiteral = (text: string): Literal => {
  const borders = new Uint32Array(text.length)
  for (let i = 1, border = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    while (border > 0 && text.charCodeAt(border) !== code) border = borders[border - 1]!
    if (text.charCodeAt(border) === code) border++
    borders[i] = border
  }
  return { text, borders }
}

const isLiteral = (token: Literal | Simple): token is Literal => "borders" in token

export type Found = Record<string, string | Array<string>>

/**
 * Searches for a literal from `at` to `limit` in the direction of `step`. Returns the far edge of the first occurrence,
 * or -1.
 */
const seek = (uri: string, at: number, limit: number, { borders, text }: Literal, step: 1 | -1): number => {
  let matched = 0
  for (let i = at; i !== limit; i += step) {
    const code = uri.charCodeAt(step === 1 ? i : i - 1)
    while (matched > 0 && text.charCodeAt(matched) !== code) matched = borders[matched - 1]!
    if (text.charCodeAt(matched) === code && ++matched === text.length) return i + step
  }
  return -1
}

const isAt = (uri: string, at: number, limit: number, { text }: Literal, step: 1 | -1): boolean => {
  if ((limit - at) * step < text.length) return false
  for (let i = 0; i < text.length; i++) {
    if (uri.charCodeAt(step === 1 ? at + i : at - 1 - i) !== text.charCodeAt(i)) return false
  }
  return true
}

const isSimple = (code: number, inQuery: boolean): boolean =>
  code !== 47 && code !== 63 && code !== 35 && !(inQuery && code === 38)

/** Sets the value of a variable, or adds it to the list of one with a `*`. */
const put = (found: Found, name: string, value: string, explode: boolean): void => {
  const list = found[name]
  if (!explode) found[name] = value
  else if (typeof list === "object") list.push(value)
  else found[name] = [value]
}

const assignList = (
  { variables }: Expression,
  raw: string,
  exact: boolean,
  separator: string,
  found: Found
): boolean => {
  const only = variables[0]!
  if (variables.length === 1 && !only.explode && separator === ",") {
    const value = decode(raw)
    if (value !== undefined) found[only.name] = value
    return value !== undefined
  }
  const texts = raw.split(separator)
  const last = variables.length - 1
  if (exact && (texts.length <= last || texts.includes(""))) return false
  if (texts.length > variables.length && !variables[last]!.explode) return false
  for (let i = 0; i < texts.length; i++) {
    const { explode, name } = variables[Math.min(i, last)]!
    const value = decode(texts[i]!)
    if (value === undefined) return false
    put(found, name, value, explode)
  }
  return true
}

const assign = (expression: Expression, raw: string, found: Found): boolean => {
  if (expression.operator !== "/") return raw !== "" && assignList(expression, raw, true, ",", found)
  if (raw === "") return true
  return raw.startsWith("/") && !raw.includes("?") && !raw.includes("#") &&
    assignList(expression, raw.slice(1), false, "/", found)
}

const assignSimple = ({ expression, inQuery }: Simple, raw: string, found: Found): boolean => {
  for (let i = 0; i < raw.length; i++) if (!isSimple(raw.charCodeAt(i), inQuery)) return false
  return assign(expression, raw, found)
}

/**
 * Reads one side from `at` towards `limit` and returns its end, or -1. A variable at the very end of the side is left
 * unread.
 */
const walk = (side: Side, uri: string, at: number, limit: number, step: 1 | -1, found: Found): number => {
  let pending: Simple | undefined
  for (const token of side) {
    if (!isLiteral(token)) pending = token
    else if (pending === undefined) {
      if (!isAt(uri, at, limit, token, step)) return -1
      at += step * token.text.length
    } else {
      // A value has at least one character.
      const edge = at === limit ? -1 : seek(uri, at + step, limit, token, step)
      const near = edge - step * token.text.length
      if (edge < 0 || !assignSimple(pending, step === 1 ? uri.slice(at, near) : uri.slice(near, at), found)) return -1
      at = edge
      pending = undefined
    }
  }
  return at
}

const readQuery = (query: string, variables: ReadonlyMap<string, boolean>, found: Found): boolean => {
  for (const pair of query.split("&")) {
    const equals = pair.indexOf("=")
    const name = equals < 0 ? pair : pair.slice(0, equals)
    const explode = variables.get(name)
    if (explode === undefined) continue
    const value = equals < 0 ? "" : decode(pair.slice(equals + 1))
    if (value === undefined || (found[name] !== undefined && !explode)) return false
    put(found, name, value, explode)
  }
  return true
}

/** Returns the index of the `?` or `&` before the query of the template, or -1. */
const queryAt = (uri: string, { continues, skip }: Query): number => {
  if (!continues) return uri.indexOf("?")
  let at = uri.indexOf("&", Math.max(uri.indexOf("?"), 0))
  for (let i = 0; i < skip && at >= 0; i++) at = uri.indexOf("&", at + 1)
  return at
}

const matchPath = ({ left, middle, right }: Plan, uri: string, found: Found): boolean => {
  let at = walk(left, uri, 0, uri.length, 1, found)
  if (at < 0) return false
  const end = walk(right, uri, uri.length, at, -1, found)
  if (end < 0) return false
  const open = left.at(-1)
  if (open !== undefined && !isLiteral(open)) {
    // At the end of the template, or before a `{/a}`: the variable takes all characters that it allows.
    let stop = at
    while (stop < end && isSimple(uri.charCodeAt(stop), open.inQuery)) stop++
    if (!assign(open.expression, uri.slice(at, stop), found)) return false
    at = stop
  }
  for (const { expression, next } of middle) {
    let stop = end
    let resume = end
    if (next !== undefined) {
      const from = expression.operator === "/" || at === end ? at : at + 1
      resume = seek(uri, from, end, next, 1)
      stop = resume - next.text.length
    }
    if (resume < 0 || !assign(expression, uri.slice(at, stop), found)) return false
    at = resume
  }
  return at === end
}

/** Matches a normalized URI. Returns the values of the variables, or `undefined` where it does not match. */
export const matchUri = (plan: Plan, uri: string): Found | undefined => {
  const found = Object.create(null) as Found
  const hash = plan.fragment === undefined ? -1 : uri.indexOf("#")
  const text = hash < 0 ? uri : uri.slice(0, hash)
  const mark = plan.query === undefined ? -1 : queryAt(text, plan.query)
  // The path first: it refuses most URIs of other templates.
  if (!matchPath(plan, mark < 0 ? text : text.slice(0, mark), found)) return undefined
  if (mark >= 0) {
    const query = text.slice(mark + 1)
    if (query.includes("#") || !readQuery(query, plan.query!.variables, found)) return undefined
  }
  if (hash >= 0) {
    const raw = uri.slice(hash + 1)
    if (!assignList(plan.fragment!, raw, raw !== "", ",", found)) return undefined
  }
  return found
}
