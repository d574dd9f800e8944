/**
 * URI templates (RFC 6570), as far as MCP servers use them: expanded, and matched in linear time.
 *
 * | expression | expands to | matches |
 * |---|---|---|
 * | `{a}`, `{a,b}`, `{a*}` | `x`, `x,y`, `x,y,z` | at least one character, none of `/ ? #` (nor `&`, after a literal `?`) |
 * | `{+a}`, `{+a,b}`, `{+a*}` | the same, with reserved characters as they are | at least one character, of any kind |
 * | `{/a}`, `{/a,b}`, `{/a*}` | `/x`, `/x/y`, `/x/y/z` | as many segments as there are, or nothing |
 * | `{?a,b}`, `{?a*}` | `?a=x&b=y`, `?a=x&a=y` | parameters in any order, or nothing; others are ignored |
 * | `{&a}` | `&a=x` | the same, behind a query that the template begins itself |
 * | `{#a}` | `#x` | the fragment, or nothing |
 *
 * The label (`{.a}`) and matrix (`{;a}`) operators, prefixes (`{a:3}`) and values that are maps are refused.
 *
 * **How a variable is bounded.** Reading from the left, a variable takes the shortest text up to the first place where the
 * literal behind it stands; the end of the template is tied to the end of the URI. What stands behind the last `{+a}` or
 * `{/a}` is read from the right in the same way, so `{+path}/{name}` gives the last segment to `name`. There is no backtracking.
 * Templates in which that would be a guess are refused when they are made; see {@link make}.
 *
 * **Gotchas.** Values are percent-decoded: `{name}` may give back a `/` that was written `%2F`, so check a value before it
 * becomes a path; and `{+a}`, which expands what is encoded already as it is, does not give a `%41` back. A list in a variable
 * without `*` comes back as one text. In a list of variables that are not named, values fill from the left. A `+` in a query is
 * a plus. A parameter that is repeated without `*` does not match. A stray `%` is taken literally; percent-encoding that is not
 * UTF-8 does not match.
 */
import * as Result from "effect/Result"
import { canonical, encodeReserved, encodeUnreserved } from "./internal/percent.ts"
import {
  type Expression,
  literal,
  type Operator,
  type Plan,
  run,
  type Side,
  type Variable
} from "./internal/uriMatch.ts"

/** What a variable can be given: `undefined`, `null` and an empty list leave it out. */
export type Value = string | number | boolean | null | undefined | ReadonlyArray<string | number | boolean>

/** What a match gives for each variable that is there: a list for `{a*}`, otherwise a text. It has no prototype. */
export type Values = { readonly [name: string]: string | ReadonlyArray<string> }

/** A template that was read once. */
export interface UriTemplate {
  /** The template as it was written. */
  readonly text: string
  /** The names of its variables, in order. */
  readonly names: ReadonlyArray<string>
  /** @internal */
  readonly parts: ReadonlyArray<string | Expression>
  /** @internal */
  readonly plan: Plan
  /** @internal */
  readonly maxUriLength: number
}

/** The bounds of a template. */
export interface Options {
  /** The longest template in UTF-16 units, 8,192 by default; a longer one is refused. */
  readonly maxLength?: number | undefined
  /** The most variables, 64 by default; a template with more is refused. */
  readonly maxVariables?: number | undefined
  /** The longest URI in UTF-16 units, 16,384 by default; a longer one does not match. */
  readonly maxUriLength?: number | undefined
}

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
        : "a variable's name holds letters, digits, _ and single dots"
    }
    variables.push({ name, explode })
  }
  const named = operator === "?" || operator === "&"
  if (!named && variables.slice(0, -1).some((variable) => variable.explode)) {
    return "only the last variable of an expression can be exploded"
  }
  return { operator, variables }
}

/** Literals (percent-encoded as they expand) and expressions, alternating as they are written. */
const readParts = (text: string): ReadonlyArray<string | Expression> | string => {
  const parts: Array<string | Expression> = []
  let at = 0
  while (at < text.length) {
    const open = text.indexOf("{", at)
    const plain = text.slice(at, open < 0 ? text.length : open)
    if (plain.includes("}")) return "a } has no {"
    if (plain !== "") parts.push(canonical(plain))
    if (open < 0) break
    const close = text.indexOf("}", open)
    if (close < 0) return "a { has no }"
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
    return literal(reversed ? reverse(part) : part)
  })
  return { tokens: reversed ? tokens.reverse() : tokens }
}

/** Why neighbours cannot be told apart, or an operator stands where it cannot. */
const ambiguity = (core: ReadonlyArray<string | Expression>): string | undefined => {
  let previous: string | Expression | undefined
  let between = 0
  let crossed = false
  for (const part of core) {
    if (typeof part !== "string") {
      if (part.operator !== "" && !crosses(part)) {
        return `{${part.operator}…} must stand behind everything but a fragment`
      }
      if (previous !== undefined && typeof previous !== "string") {
        if (crosses(previous) || part.operator !== "/") return "two expressions need a literal between them"
      }
      if (crosses(part)) {
        if (crossed && between > 0) return "between two {+…} or {/…} only a literal can stand"
        crossed = true
        between = 0
      } else between++
    }
    previous = part
  }
  return undefined
}

/**
 * Reads a template. It fails, with the reason, where the template
 * - is malformed, uses an operator that is not supported, or is over a bound;
 * - names a variable twice, or explodes a variable that is not the last of its expression (queries excepted);
 * - has two expressions side by side, `{a}{b}`, of which the second does not begin with a mark of its own, or where the first
 *   is `{+a}` or `{/a}` and crosses segments itself;
 * - has a simple expression between two that cross segments: `{+a}/{b}/{+c}`;
 * - has anything but `{#…}` behind `{?…}` or `{&…}`, or anything behind `{#…}`, or `{?…}` behind a literal `?`.
 */
export const make = (text: string, options?: Options): Result.Result<UriTemplate, string> => {
  const maxLength = options?.maxLength ?? 8192
  if (text.length > maxLength) return Result.fail(`the template is longer than ${maxLength}`)
  const parts = readParts(text)
  if (typeof parts === "string") return Result.fail(parts)
  const variables = parts.flatMap((part) => typeof part === "string" ? [] : part.variables)
  const names = variables.map((variable) => variable.name)
  const maxVariables = options?.maxVariables ?? 64
  if (names.length > maxVariables) return Result.fail(`the template has more than ${maxVariables} variables`)
  if (new Set(names).size !== names.length) return Result.fail("a variable is named twice")

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
  const refused = ambiguity(core)
  if (refused !== undefined) return Result.fail(refused)
  const literals = core.filter((part) => typeof part === "string").join("")
  if (queries[0]?.operator === "?" && literals.includes("?")) return Result.fail("{?…} cannot follow a literal ?")
  if (fragment !== undefined && literals.includes("#")) return Result.fail("{#…} cannot follow a literal #")

  const first = core.findIndex(crosses)
  const final = core.findLastIndex(crosses)
  const middle = first < 0 ? [] : core.slice(first, final + 1)
  // Without an expression that crosses segments all is read from the left, but for a literal at the end.
  const cut = first >= 0 ? first : typeof core.at(-1) === "string" ? core.length - 1 : core.length
  const rest = first >= 0 ? final + 1 : cut
  const inQuery = core.slice(0, rest).some((part) => typeof part === "string" && part.includes("?"))
  const plan: Plan = {
    left: side(core.slice(0, cut), false, false),
    middle: middle.flatMap((part, i) => {
      const behind = middle[i + 1]
      return typeof part === "string"
        ? []
        : [{ expression: part, behind: typeof behind === "string" ? literal(behind) : undefined }]
    }),
    right: side(core.slice(rest), inQuery, true),
    query: queries.length === 0 ? undefined : {
      variables: new Map(queries.flatMap((query) => query.variables.map(({ explode, name }) => [name, explode]))),
      continues: queries[0]!.operator === "&",
      skip: literals.split("&").length - 1
    },
    fragment
  }
  return Result.succeed({ text, names, parts, plan, maxUriLength: options?.maxUriLength ?? 16_384 })
}

/**
 * Writes a URI. It never fails: a variable without a value is left out, as RFC 6570 says, and what is not allowed in its place is
 * percent-encoded.
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

// Who reads a URI tries it with every template there is, and spelling it out is most of the work.
let latest = { uri: "", spelt: "" }

const spell = (uri: string): string => {
  if (uri !== latest.uri) latest = { uri, spelt: canonical(uri) }
  return latest.spelt
}

/**
 * Reads a URI: the values of the variables, or `undefined` where it does not match. It never throws, and its time is linear in the
 * length of the URI, whatever the template is. The URI may be spelt with characters that a URI must encode.
 */
export const match = (template: UriTemplate, uri: string): Values | undefined =>
  uri.length > template.maxUriLength ? undefined : run(template.plan, spell(uri))
