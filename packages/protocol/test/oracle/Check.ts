/** The properties that the model is held to. Each answers with a complaint, or with `undefined` where there is none. */
import type * as Definitions from "@skein/protocol/Definitions"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Json from "./Json.ts"
import type * as Spec from "./Spec.ts"
import * as Validate from "./Validate.ts"

/** What the checks need of a definition. */
export type Subject = Pick<Definitions.Definition, "name" | "read" | "write">

/** What would be on the wire. */
const overTheWire = (value: unknown): unknown => {
  const text = JSON.stringify(value)
  return text === undefined ? undefined : JSON.parse(text)
}

/** Values of the canonical schema, the same ones in every run. */
export const canonical = (
  definition: Pick<Definitions.Definition, "schema">,
  seed: string,
  count: number
): ReadonlyArray<unknown> =>
  Effect.runSync(Arbitrary.sampleEffect(Arbitrary.schema(definition.schema), { count, seed, size: 4 }))

/**
 * What is written is accepted: the value, written at this revision, is what the official schema allows. A writer may
 * say that the revision cannot carry the value; that is not a complaint.
 */
export const write = (subject: Subject, document: Spec.Document, value: unknown): string | undefined => {
  const written = subject.write(value)
  if (Result.isFailure(written)) return undefined
  const wire = overTheWire(written.success)
  const message = Validate.refusal(document, subject.name, wire)
  return message && `refused: ${message}\nwritten: ${JSON.stringify(wire)}\nfrom: ${JSON.stringify(value)}`
}

/**
 * What is allowed is read, and kept: the value is read, written again at the same revision, accepted by the official
 * schema and the same as before (or as `expected`). Nothing is changed in place.
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
  const changed = Json.difference(expected, wire)
  if (changed !== undefined) return complain(`not the same after reading and writing at ${changed}`, wire)
  return undefined
}

/**
 * What is allowed is read, whoever sent it: a value that the official schema accepts is read, and can be written again in
 * a way that the official schema accepts. It may have lost what this revision does not know.
 */
export const read = (subject: Subject, document: Spec.Document, raw: unknown): string | undefined => {
  const result = subject.read(raw)
  if (Result.isFailure(result)) return `not read: ${result.failure}\nread: ${JSON.stringify(raw)}`
  return write(subject, document, result.success)
}
