/**
 * The properties of the model that the oracle checks. Each check returns a description of a problem, or `undefined`.
 */
import type * as Definitions from "./Definitions.ts"
import * as Text from "@skein/protocol/Text"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Json from "./Json.ts"
import type * as Spec from "./Spec.ts"
import * as Validate from "./Validate.ts"

/** The part of a definition that the checks need. */
export type Subject = Pick<Definitions.Definition, "name" | "read" | "write">

/** Returns the value after a JSON round trip. */
const overTheWire = (value: unknown): unknown => {
  const text = JSON.stringify(value)
  return text === undefined ? undefined : JSON.parse(text)
}

/** Generates values from the schema of the model, the same ones in every run. */
export const canonical = (
  definition: Pick<Definitions.Definition, "schema">,
  seed: string,
  count: number
): ReadonlyArray<unknown> =>
  Effect.runSync(Arbitrary.sampleEffect(Arbitrary.schema(definition.schema), { count, seed, size: 4 }))

/**
 * Checks that the official schema accepts the written value. Writing may fail because the revision cannot represent the
 * value; that is not a problem.
 */
export const write = (subject: Subject, document: Spec.Document, value: unknown): string | undefined => {
  const written = subject.write(value)
  if (Result.isFailure(written)) return undefined
  const wire = overTheWire(written.success)
  const message = Validate.refusal(document, subject.name, wire)
  return message && `refused: ${message}\nwritten: ${JSON.stringify(wire)}\nfrom: ${JSON.stringify(value)}`
}

/** A value whose texts and names have U+FFFD in the place of surrogates without a partner, as messages do. */
const wellFormed = (value: unknown): unknown =>
  typeof value === "string"
    ? Text.wellFormed(value)
    : Array.isArray(value)
    ? value.map(wellFormed)
    : typeof value === "object" && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [Text.wellFormed(name), wellFormed(member)]))
    : value

/**
 * Checks that a value survives reading and writing in the same revision: the official schema accepts the written value,
 * and it equals the received one (or `expected`). Nothing is changed in place.
 */
export const roundTrip = (
  subject: Subject,
  document: Spec.Document,
  raw: unknown,
  expected: unknown = raw
): string | undefined => {
  const before = structuredClone(raw)
  const complain = (what: string, wire?: unknown): string =>
    `${what}\nread: ${JSON.stringify(before)}${wire === undefined ? "" : `\nwritten: ${JSON.stringify(wire)}`}`
  const result = subject.read(raw)
  if (Result.isFailure(result)) return complain(`not read: ${result.failure}`)
  const written = subject.write(result.success)
  if (Result.isFailure(written)) return complain(`not written again: ${written.failure.message}`)
  const wire = overTheWire(written.success)
  const message = Validate.refusal(document, subject.name, wire)
  if (message !== undefined) return complain(`written again and refused: ${message}`, wire)
  const edited = Json.difference(before, raw)
  if (edited !== undefined) return complain(`changed in place at ${edited}`, raw)
  const changed = Json.difference(wellFormed(expected), wellFormed(wire))
  if (changed !== undefined) return complain(`not the same after reading and writing at ${changed}`, wire)
  return undefined
}

/**
 * Checks that a value can be read, and written again in a form that the official schema accepts. The written value may
 * lack members of other revisions.
 */
export const read = (subject: Subject, document: Spec.Document, raw: unknown): string | undefined => {
  const result = subject.read(raw)
  if (Result.isFailure(result)) return `not read: ${result.failure}\nread: ${JSON.stringify(raw)}`
  return write(subject, document, result.success)
}
