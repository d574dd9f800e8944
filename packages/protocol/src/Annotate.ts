/**
 * Annotations for the schemas of the model: the revisions in which a field or a union member exists, and how it is read
 * and written outside of them.
 *
 * Each combinator attaches a rule to a schema and returns the schema with the same type. `Adapt` applies the rules. The
 * window of revisions is closed on the left and open on the right: `since` is the first revision that has the field,
 * `until` is the first one that does not.
 *
 * The rules of a **field**:
 * - Outside its window a field is left out when writing. Reading keeps it, since peers send members that are newer than
 *   the negotiated revision; a malformed one is left out, as its name is then an unknown member.
 * - `default`: the value of an absent field, when reading any revision and when writing within the window.
 * - `fill`: the value of an absent field within the window, when writing only. It may return `undefined` to leave the
 *   field absent, and may call {@link refuse}.
 * - `rename`: the name of the field on the wire in some revisions.
 * - `lower`: the value to write instead; `undefined` leaves the field out. It may call {@link refuse}.
 * - `lift`: the value to read instead; `undefined` ignores the field. It must not throw.
 * - `required`: the revisions that require the field although it is optional in the model. In them reading fails
 *   without the field, and so does writing, unless the field is filled in.
 * - `refuse`: the name of the field in the error for writing it outside its window. Use it where leaving the field out
 *   would change the meaning of the message.
 * - `absent`: the value of a required field that is absent or `null`, when reading. Peers leave the field out although
 *   every revision requires it.
 * - `essential`: a malformed value makes the message malformed. Other optional fields are left out where `Codec` may
 *   ignore malformed members. A list or a record that is essential is read whole: no item is left out.
 *
 * The rules of a **union member**:
 * - `degrade`: the value to write instead outside the window. Use it for displayed content only. Without it, writing
 *   the member outside its window is refused.
 *
 * @example
 * const Item = Schema.Struct({
 *   name: Schema.String,
 *   title: Annotate.since("2025-06-18", Schema.optionalKey(Schema.String))
 * })
 */
import type * as Schema from "effect/Schema"
import type * as AST from "effect/SchemaAST"
import * as PrintableError from "./PrintableError.ts"
import { all, indexOf, type Revision } from "./Revision.ts"

/**
 * The error for a value that a revision cannot represent without a change of meaning, such as a URL elicitation in
 * `2025-06-18`. `message` is one line. Nothing was written, so there is nothing to send.
 */
export class Unrepresentable extends PrintableError.tagged("Unrepresentable") {}

/**
 * Refuses to write a value: throws {@link Unrepresentable}. Call it only within a `fill`, `lower` or `degrade`, where
 * `Codec` catches it and returns it as a value.
 *
 * @example
 * Annotate.refuse(`${revision} allows one block per sampling message, not ${blocks.length}`)
 */
export const refuse = (message: string): never => {
  throw new Unrepresentable({ message })
}

/** A range of revisions: `since` and newer, older than `until`. Without a bound the range is open on that side. */
export interface Window {
  readonly since?: Revision | undefined
  readonly until?: Revision | undefined
}

/** The rules of a field whose value is a `T`. The module's comment describes each. */
export interface FieldOptions<T> {
  readonly default?: T | undefined
  readonly fill?: ((revision: Revision) => T | undefined) | undefined
  readonly rename?: (Window & { readonly to: string }) | undefined
  readonly lower?: ((value: T, revision: Revision) => unknown) | undefined
  readonly refuse?: string | undefined
  readonly essential?: boolean | undefined
  readonly absent?: T | undefined
  readonly required?: ((revision: Revision) => boolean) | undefined
  readonly lift?: ((value: unknown, revision: Revision) => T | undefined) | undefined
}

/** The rules of a field with its window, as `Adapt` reads them. */
export interface FieldRule extends FieldOptions<unknown>, Window {}

/** The rules of a union member whose value is a `T`. */
export interface MemberOptions<T> extends Window {
  /**
   * The name of the member in the error for writing it outside its window, as in "2025-06-18 does not support audio".
   */
  readonly name?: string | undefined
  readonly degrade?: ((value: T, revision: Revision) => unknown) | undefined
}

/** The rules of a union member, as `Adapt` reads them. */
export interface MemberRule extends MemberOptions<unknown> {}

const fieldKey = "~skein/field"
const memberKey = "~skein/member"
const guardKey = "~skein/guard"
const fallbackKey = "~skein/fallback"

/** Reads the rules of a field from the type of its property signature. */
export const fieldRule = (type: AST.AST): FieldRule | undefined =>
  type.context?.annotations?.[fieldKey] as FieldRule | undefined

/** Reads the rules of a union member. */
export const memberRule = (member: AST.AST): MemberRule | undefined => {
  const check = member.checks?.[member.checks.length - 1]
  return (check?.annotations?.[memberKey] ?? member.annotations?.[memberKey]) as MemberRule | undefined
}

/**
 * Makes the annotation that gives a declaration its type guard. `Adapt` uses the guard to find the member of a union.
 */
export const guard = (is: (value: unknown) => boolean): { readonly [key: string]: unknown } => ({ [guardKey]: is })

/** Reads the type guard of a declaration, if it has one. */
export const guardOf = (ast: AST.AST): ((value: unknown) => boolean) | undefined =>
  ast.annotations?.[guardKey] as ((value: unknown) => boolean) | undefined

/**
 * Attaches rules to a field of any window. The rules of several calls are merged.
 *
 * @example
 * Annotate.field(Schema.Array(Schema.String), { lower: (values) => values.slice(0, 100) })
 */
export const field = <S extends Schema.Top>(schema: S, options: FieldOptions<S["Type"]> & Window): S =>
  schema.annotateKey({ [fieldKey]: { ...fieldRule(schema.ast), ...options } }) as unknown as S

/**
 * An optional field without which the message has another meaning, such as `nextCursor`: see `essential`.
 *
 * @example
 * Annotate.essential(Schema.optionalKey(Schema.String))
 */
export const essential = <S extends Schema.Top>(schema: S): S => field(schema, { essential: true })

/**
 * Attaches to a schema the value that is read instead of a value that it does not allow, or of a required member that is
 * missing, where `Codec` may ignore malformed members. `undefined` leaves the value unreadable.
 */
export const fallback = <S extends Schema.Top>(schema: S, instead: (value: unknown) => S["Type"] | undefined): S =>
  schema.annotate({ [fallbackKey]: instead }) as unknown as S

/** Reads the function of {@link fallback}. */
export const fallbackOf = (ast: AST.AST): ((value: unknown) => unknown) | undefined =>
  ast.annotations?.[fallbackKey] as ((value: unknown) => unknown) | undefined

/**
 * A field that exists since a revision.
 *
 * @example
 * Annotate.since("2025-03-26", Schema.optionalKey(Schema.String))
 */
export const since = <S extends Schema.Top>(revision: Revision, schema: S, options?: FieldOptions<S["Type"]>): S =>
  field(schema, { ...options, since: revision })

/** A field that a revision removed: it exists in all older ones. */
export const until = <S extends Schema.Top>(revision: Revision, schema: S, options?: FieldOptions<S["Type"]>): S =>
  field(schema, { ...options, until: revision })

/** The window of one revision alone. */
export const alone = (revision: Revision): Window => ({
  since: revision,
  until: all[indexOf(revision) + 1]
})

/** A field that exists in one revision only. */
export const only = <S extends Schema.Top>(revision: Revision, schema: S, options?: FieldOptions<S["Type"]>): S =>
  field(schema, { ...options, ...alone(revision) })

/**
 * Attaches rules to a schema that is a member of a union. They hold in every union that lists the schema.
 *
 * @example
 * Annotate.member(Audio, {
 *   since: "2025-03-26",
 *   degrade: ({ mimeType }) => ({ type: "text", text: `[audio: ${mimeType}]` })
 * })
 */
export const member = <S extends Schema.Top>(schema: S, options: MemberOptions<S["Type"]>): S =>
  schema.annotate({ [memberKey]: { ...memberRule(schema.ast), ...options } }) as unknown as S
