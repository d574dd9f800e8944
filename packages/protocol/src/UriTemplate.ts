/**
 * URI templates (RFC 6570), in the subset that MCP servers use: expansion, and matching in linear time.
 *
 * | expression | expands to | matches |
 * |---|---|---|
 * | `{a}`, `{a,b}`, `{a*}` | `x`, `x,y`, `x,y,z` | one or more characters, not `/ ? #` (nor `&` after a literal `?`) |
 * | `{+a}`, `{+a,b}`, `{+a*}` | the same, with reserved characters unchanged | one or more characters |
 * | `{/a}`, `{/a,b}`, `{/a*}` | `/x`, `/x/y`, `/x/y/z` | any number of segments, or nothing |
 * | `{?a,b}`, `{?a*}` | `?a=x&b=y`, `?a=x&a=y` | parameters in any order, or nothing; other parameters are ignored |
 * | `{&a}` | `&a=x` | the same, after a query that starts in the template's literals |
 * | `{#a}` | `#x` | the fragment, or nothing |
 *
 * The label (`{.a}`) and matrix (`{;a}`) operators, prefixes (`{a:3}`) and maps as values are not supported.
 *
 * **Where a variable ends.** Matching reads from the left. A variable takes the shortest text up to the first
 * occurrence of the literal after it, and the end of the template matches the end of the URI. The part after the last
 * `{+a}` or `{/a}` is read from the right in the same way, so `{+path}/{name}` matches the last segment as `name`.
 * There is no backtracking. {@link make} refuses templates that would need it.
 *
 * **Gotchas**
 * - Values are percent-decoded. A value of `{name}` can contain a `/` that was `%2F` in the URI: check it before using
 *   it in a path.
 * - `{+a}` expands text that is percent-encoded already as it is, so a `%41` in a value does not survive expansion and
 *   matching.
 * - A list in a variable without `*` is matched as one text. A list of variables without names is filled from the left.
 * - A `+` in a query is a plus. A parameter that is repeated without `*` does not match.
 * - A `%` outside percent-encoding is taken literally. Percent-encoding that is not UTF-8 does not match.
 *
 * @example
 * const template = Result.getOrThrow(UriTemplate.make("file:///{+path}/{name}"))
 * UriTemplate.expand(template, { path: "a/b", name: "c.txt" }) // file:///a/b/c.txt
 * UriTemplate.match(template, "file:///a/b/c.txt") // { path: "a/b", name: "c.txt" }
 */
import * as Result from "effect/Result"
import {
  type Expression,
  makeLiteral,
  matchUri,
  type Operator,
  type Plan,
  type Side,
  type Variable
} from "./internal/uriTemplate/matchUri.ts"
import { encodeReserved, encodeUnreserved, normalize } from "./internal/uriTemplate/percentEncoding.ts"

/** The value of a variable for {@link expand}. `undefined`, `null` and an empty list leave the variable out. */
export type Value = string | number | boolean | null | undefined | ReadonlyArray<string | number | boolean>

/** The values that {@link match} returns: a list for `{a*}`, otherwise a text. The object has no prototype. */
export type Values = { readonly [name: string]: string | ReadonlyArray<string> }

/** A parsed template. */
export interface UriTemplate {
  /** The text of the template. */
  readonly text: string
  /** The names of the variables, in order. */
  readonly names: ReadonlyArray<string>
  /** @internal */
  readonly parts: ReadonlyArray<string | Expression>
  /** @internal */
  readonly plan: Plan
}

/** The most variables of a template. */
const maxVariables = 64

/** The most characters of a template (UTF-16 units). A longer one is refused. */
const maxChars = 8_192

/** The most characters of a URI to match (UTF-16 units). A longer one does not match. */
const maxUriChars = 16_384

const reverse = (text: string): string => {
  let reversed = ""
  for (let i = text.length - 1; i >= 0; i--) reversed += text[i]
  return reversed
}

const crosses = (part: string | Expression): boolean =>
  typeof part !== "string" && (part.operator === "+" || part.operator === "/")

const varname = /^(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*$/

const readExpression = (inner: string): Expression | string => {
  const first = inner.charAt(0)
  const operator = "+#/?&".includes(first) ? first as Operator : ""
  if (first !== "" && ".;=,!@|".includes(first)) return `the operator "${first}" is not supported`
  const variables: Array<Variable> = []
  for (const spec of inner.slice(operator.length).split(",")) {
    const explode = spec.endsWith("*")
    const name = explode ? spec.slice(0, -1) : spec
    if (!varname.test(name)) {
      return name.includes(":")
        ? "prefixes are not supported"
        : "a variable name must consist of letters, digits, underscores and single dots"
    }
    variables.push({ name, explode })
  }
  const named = operator === "?" || operator === "&"
  if (!named && variables.slice(0, -1).some((variable) => variable.explode)) {
    return "only the last variable of an expression may have a *"
  }
  return { operator, variables }
}

/** Splits a template into literals, percent-encoded as they expand, and expressions. */
const readParts = (text: string): ReadonlyArray<string | Expression> | string => {
  const parts: Array<string | Expression> = []
  let at = 0
  while (at < text.length) {
    const open = text.indexOf("{", at)
    const plain = text.slice(at, open < 0 ? text.length : open)
    if (plain.includes("}")) return "a } without a {"
    if (plain !== "") parts.push(normalize(plain))
    if (open < 0) break
    const close = text.indexOf("}", open)
    if (close < 0) return "a { without a }"
    const expression = readExpression(text.slice(open + 1, close))
    if (typeof expression === "string") return expression
    parts.push(expression)
    at = close + 1
  }
  return parts
}

const side = (parts: ReadonlyArray<string | Expression>, inQuery: boolean, reversed: boolean): Side => {
  const tokens = parts.map((part) => {
    if (typeof part !== "string") return { expression: part, inQuery }
    if (part.includes("?")) inQuery = true
    return makeLiteral(reversed ? reverse(part) : part)
  })
  return reversed ? tokens.reverse() : tokens
}

/** Returns the reason why matching would be ambiguous, or why an operator is not allowed in its position. */
const ambiguity = (core: ReadonlyArray<string | Expression>): string | undefined => {
  let previous: string | Expression | undefined
  let between = 0
  let crossed = false
  for (const part of core) {
    if (typeof part !== "string") {
      if (part.operator !== "" && !crosses(part)) {
        return `{${part.operator}…} must come after everything except a fragment`
      }
      if (previous !== undefined && typeof previous !== "string") {
        if (crosses(previous) || part.operator !== "/") return "two expressions need a literal between them"
      }
      if (crosses(part)) {
        if (crossed && between > 0) return "between two {+…} or {/…} only a literal is allowed"
        crossed = true
        between = 0
      } else between++
    }
    previous = part
  }
  return undefined
}

/**
 * Parses a template. Fails with the reason if the template
 * - is malformed, has an unsupported operator, or exceeds a bound;
 * - has a variable twice, or a `*` on a variable that is not the last of its expression (except in a query);
 * - has two adjacent expressions (`{a}{b}`), unless the second one is `{/b}` and the first one is simple;
 * - has a simple expression between two that cross segments (`{+a}/{b}/{+c}`);
 * - has anything but `{#…}` after `{?…}` or `{&…}`, anything after `{#…}`, or `{?…}` after a literal `?`.
 *
 * @example
 * UriTemplate.make("users://{id}/profile{?lang}")
 */
export const make = (text: string): Result.Result<UriTemplate, string> => {
  if (text.length > maxChars) return Result.fail(`the template has more than ${maxChars} characters`)
  const parts = readParts(text)
  if (typeof parts === "string") return Result.fail(parts)
  const variables = parts.flatMap((part) => typeof part === "string" ? [] : part.variables)
  const names = variables.map((variable) => variable.name)
  if (names.length > maxVariables) return Result.fail(`the template has more than ${maxVariables} variables`)
  if (new Set(names).size !== names.length) return Result.fail("a variable occurs twice")

  const core = [...parts]
  const last = core.at(-1)
  const fragment = typeof last === "object" && last.operator === "#" ? last : undefined
  if (fragment !== undefined) core.pop()
  const queries: Array<Expression> = []
  for (
    let part = core.at(-1);
    typeof part === "object" && "?&".includes(part.operator) && part.operator !== "";
    part = core.at(-1)
  ) {
    queries.unshift(part)
    core.pop()
    if (part.operator === "?") break
  }
  const problem = ambiguity(core)
  if (problem !== undefined) return Result.fail(problem)
  const literals = core.filter((part) => typeof part === "string").join("")
  if (queries[0]?.operator === "?" && literals.includes("?")) return Result.fail("{?…} must not follow a literal ?")
  if (fragment !== undefined && literals.includes("#")) return Result.fail("{#…} must not follow a literal #")

  const first = core.findIndex(crosses)
  const final = core.findLastIndex(crosses)
  const middle = first < 0 ? [] : core.slice(first, final + 1)
  // Without an expression that crosses segments everything is read from the left, except a literal at the end.
  const cut = first >= 0 ? first : typeof core.at(-1) === "string" ? core.length - 1 : core.length
  const rest = first >= 0 ? final + 1 : cut
  const inQuery = core.slice(0, rest).some((part) => typeof part === "string" && part.includes("?"))
  const plan: Plan = {
    left: side(core.slice(0, cut), false, false),
    middle: middle.flatMap((part, i) => {
      const next = middle[i + 1]
      return typeof part === "string"
        ? []
        : [{ expression: part, next: typeof next === "string" ? makeLiteral(next) : undefined }]
    }),
    right: side(core.slice(rest), inQuery, true),
    query: queries.length === 0 ? undefined : {
      variables: new Map(queries.flatMap((query) => query.variables.map(({ explode, name }) => [name, explode]))),
      continues: queries[0]!.operator === "&",
      skip: literals.split("&").length - 1
    },
    fragment
  }
  return Result.succeed({ text, names, parts, plan })
}

/**
 * Makes a URI from a template and values. It does not fail: a variable without a value is left out, as RFC 6570
 * specifies, and characters that are not allowed are percent-encoded.
 *
 * @example
 * UriTemplate.expand(template, { id: "42" })
 */
export const expand = (template: UriTemplate, values: { readonly [name: string]: Value }): string => {
  let uri = ""
  for (const part of template.parts) uri += typeof part === "string" ? part : expandOne(part, values)
  return uri
}

const expandOne = ({ operator, variables }: Expression, values: { readonly [name: string]: Value }): string => {
  const encode = operator === "+" || operator === "#" ? encodeReserved : encodeUnreserved
  const named = operator === "?" || operator === "&"
  const written: Array<string> = []
  for (const { explode, name } of variables) {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined || value === null || (typeof value === "object" && value.length === 0)) continue
    const texts = typeof value === "object" ? value.map((one) => encode(String(one))) : [encode(String(value))]
    const joined = explode ? texts : [texts.join(",")]
    for (const one of joined) written.push(named ? `${name}=${one}` : one)
  }
  if (written.length === 0) return ""
  const separator = named ? "&" : operator === "/" ? "/" : ","
  return (operator === "+" ? "" : operator) + written.join(separator)
}

// A server tries one URI with all of its templates, and normalizing the URI takes most of the time of a match.
let latest = { uri: "", normalized: "" }

const normalizeOnce = (uri: string): string => {
  if (uri !== latest.uri) latest = { uri, normalized: normalize(uri) }
  return latest.normalized
}

/**
 * Matches a URI and returns the values of the variables, or `undefined` where it does not match. It does not throw. The
 * time is linear in the length of the URI for every template. The URI may contain characters that should be
 * percent-encoded.
 *
 * @example
 * UriTemplate.match(template, "users://42/profile?lang=de") // { id: "42", lang: "de" }
 */
export const match = (template: UriTemplate, uri: string): Values | undefined =>
  uri.length > maxUriChars ? undefined : matchUri(template.plan, normalizeOnce(uri))
