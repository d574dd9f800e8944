/**
 * URI templates (RFC 6570), for the resource templates of servers.
 */
import * as Core from "@skein/protocol/UriTemplate"
import * as Result from "effect/Result"

/** The value of a variable. `undefined`, `null` and an empty list leave the variable out. */
export type UriValue = string | number | boolean | null | undefined | ReadonlyArray<string | number | boolean>

/** A URI template. */
export interface UriTemplate {
  readonly text: string
  /** The names of its variables. */
  readonly names: ReadonlyArray<string>
  /** Makes a URI. Characters that are not allowed are percent-encoded. */
  readonly expand: (values: { readonly [name: string]: UriValue }) => string
  /** Returns the values of the variables in a URI, or `undefined` where it does not match. */
  readonly match: (uri: string) => { readonly [name: string]: string | ReadonlyArray<string> } | undefined
}

/**
 * Parses a URI template. Throws a `SyntaxError` for one that is malformed, or ambiguous where URIs are matched.
 *
 * @example
 * const [{ uriTemplate: text }] = await client.listResourceTemplates()
 * await client.readResource(uriTemplate(text).expand({ id: "42" }))
 */
export const uriTemplate = (text: string): UriTemplate => {
  const parsed = Core.make(text)
  if (Result.isFailure(parsed)) throw new SyntaxError(parsed.failure)
  const template = parsed.success
  return {
    text: template.text,
    names: template.names,
    expand: (values) => Core.expand(template, values),
    match: (uri) => Core.match(template, uri)
  }
}
