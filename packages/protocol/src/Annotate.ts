/**
 * How the model says in which revisions a field or a union member exists, and what happens outside of them.
 *
 * Each combinator hangs one rule on a schema and returns it with the same type, so that inference is untouched. Nothing
 * here adapts anything: `Adapt` reads the rules. A window is closed on the left and open on the right: `since` is the first
 * revision that has it, `until` the first that does not.
 *
 * What a rule can say of a **field**:
 * - Outside its window a field is left out when writing, and ignored when reading (it is then an unknown member, whatever
 *   this model calls by that name).
 * - `default`: a value for it when it is absent, both when reading (from any revision) and when writing (within the window).
 * - `fill`: a value for it when it is absent and within the window, when writing only. It may answer
 *   `undefined` to leave it absent, and may refuse.
 * - `rename`: its name on the wire in some revisions.
 * - `lower`: what is written in its place; `undefined` leaves it out. It may refuse.
 * - `lift`: what is read in its place; `undefined` ignores it. It must be total.
 * - `required`: the revisions that ask for it although the model lets it be absent. There reading fails without it, and
 *   writing is refused without it, unless it is filled in.
 * - `refuse`: writing it outside of the window is refused, because leaving it out would change what is said.
 *
 * What a rule can say of a **union member**:
 * - `degrade`: what is written instead outside of the window. Only for what is displayed. Without it, writing is refused.
 */
import * as Data from "effect/Data"
import type * as Schema from "effect/Schema"
import type * as AST from "effect/SchemaAST"
import type { Revision } from "./Revision.ts"

/**
 * A value that a revision cannot carry without changing what it means, a URL elicitation for `2025-06-18` for instance.
 * `message` is one line that says what cannot be said. Nothing was written, and nothing should be sent.
 */
export class Unrepresentable extends Data.TaggedError("Unrepresentable")<{ readonly message: string }> {}

/** Refuses to write, from within a `fill`, `lower` or `degrade`. Whoever called the codec gets it as a value. */
export const refuse = (message: string): never => {
  throw new Unrepresentable({ message })
}

/** Some consecutive revisions: from `since` on, and before `until`. */
export interface Window {
  readonly since?: Revision | undefined
  readonly until?: Revision | undefined
}

/** What may be said of a field whose value is a `T`. */
export interface FieldOptions<T> {
  readonly default?: T
  readonly fill?: (revision: Revision) => T | undefined
  readonly rename?: Window & { readonly to: string }
  readonly lower?: (value: T, revision: Revision) => unknown
  readonly refuse?: string
  readonly required?: (revision: Revision) => boolean
  readonly lift?: (value: unknown, revision: Revision) => T | undefined
}

/** The rule of a field, as `Adapt` reads it. */
export interface FieldRule extends FieldOptions<unknown>, Window {}

/** What may be said of a union member whose value is a `T`. */
export interface MemberOptions<T> extends Window {
  /** What to call it in a refusal. */
  readonly name?: string
  readonly degrade?: (value: T, revision: Revision) => unknown
}

/** The rule of a union member, as `Adapt` reads it. */
export interface MemberRule extends MemberOptions<unknown> {}

const fieldKey = "~skein/field"
const memberKey = "~skein/member"
const guardKey = "~skein/guard"

/** The rule of a field, from the type of its property signature. */
export const fieldRule = (type: AST.AST): FieldRule | undefined =>
  type.context?.annotations?.[fieldKey] as FieldRule | undefined

/** The rule of a union member. */
export const memberRule = (member: AST.AST): MemberRule | undefined => {
  const check = member.checks?.[member.checks.length - 1]
  return (check?.annotations?.[memberKey] ?? member.annotations?.[memberKey]) as MemberRule | undefined
}

/** The annotation of a declaration that says by which guard its values are told from others in a union. */
export const guard = (is: (value: unknown) => boolean): { readonly [key: string]: unknown } => ({ [guardKey]: is })

/** The guard of a declaration, if it has one. */
export const guardOf = (ast: AST.AST): ((value: unknown) => boolean) | undefined =>
  ast.annotations?.[guardKey] as ((value: unknown) => boolean) | undefined

/** Says something of a field, whatever its window. Rules that are hung on one field are merged. */
export const field = <S extends Schema.Top>(schema: S, options: FieldOptions<S["Type"]> & Window): S =>
  schema.annotateKey({ [fieldKey]: { ...fieldRule(schema.ast), ...options } }) as unknown as S

/** A field that some peers write as `null` where they have nothing to say: that is taken as absent. */
export const orNull = <S extends Schema.Top>(schema: S): S =>
  field(schema, { lift: (value) => value === null ? undefined : value })

/** A field that exists since a revision. */
export const since = <S extends Schema.Top>(revision: Revision, schema: S, options?: FieldOptions<S["Type"]>): S =>
  field(schema, { ...options, since: revision })

/** A field that exists no more since a revision. */
export const until = <S extends Schema.Top>(revision: Revision, schema: S, options?: FieldOptions<S["Type"]>): S =>
  field(schema, { ...options, until: revision })

const next: { readonly [R in Revision]: Revision | undefined } = {
  "2024-11-05": "2025-03-26",
  "2025-03-26": "2025-06-18",
  "2025-06-18": "2025-11-25",
  "2025-11-25": "2026-07-28",
  "2026-07-28": undefined
}

/** The window of one revision alone. */
export const alone = (revision: Revision): Window => ({ since: revision, until: next[revision] })

/** A field that exists in one revision only. */
export const only = <S extends Schema.Top>(revision: Revision, schema: S, options?: FieldOptions<S["Type"]>): S =>
  field(schema, { ...options, ...alone(revision) })

/** Says of a schema in which revisions it is a member of the unions that list it. */
export const member = <S extends Schema.Top>(schema: S, options: MemberOptions<S["Type"]>): S =>
  schema.annotate({ [memberKey]: { ...memberRule(schema.ast), ...options } }) as unknown as S
