/**
 * Compiles the adapters between the messages of a revision and the model. To *lift* is to turn a received message into
 * the model, before validation. To *lower* is to turn a value of the model into the message to write. An adapter is
 * compiled from the annotated AST of a schema (see `Annotate`) on first use, once per AST node and revision.
 *
 * - No adapter (`undefined`) means that the revision needs no change. This is the usual case.
 * - An unaffected value is returned by reference. An affected value is copied shallowly. Unknown members always stay.
 * - An adapter does not validate. A lifting adapter accepts any input and does not throw. A lowering adapter throws
 *   `Unrepresentable`, or the error of a rule that received a value outside the model. `Codec` returns both as a value.
 */
import * as AST from "effect/SchemaAST"
import { type FieldRule, fieldRule, guardOf, type MemberRule, memberRule, refuse, type Window } from "./Annotate.ts"
import { literalsOf, without } from "./internal/revisions/repair.ts"
import { isObject } from "./JsonRpc.ts"
import * as Revision from "./Revision.ts"

/** `lift` when reading a message, `lower` when writing one. */
export type Direction = "lift" | "lower"

/** A compiled adapter. */
export type Adapter = (value: unknown) => unknown

interface Mutable {
  [key: string]: unknown
}

const within = (window: Window | undefined, revision: Revision.Revision): boolean =>
  window === undefined || Revision.within(revision, window.since, window.until)

// Two slots per revision for each AST node. `null` is a compiled adapter that changes nothing.
const compiled = new WeakMap<AST.AST, Array<Adapter | null | undefined>>()

/** Returns the adapter of a schema's AST for a revision, or `undefined` where no change is needed. */
export const compile = (ast: AST.AST, revision: Revision.Revision, direction: Direction): Adapter | undefined => {
  let slots = compiled.get(ast)
  if (slots === undefined) compiled.set(ast, slots = [])
  const slot = Revision.indexOf(revision) * 2 + (direction === "lift" ? 0 : 1)
  const cached = slots[slot]
  if (cached !== undefined) return cached ?? undefined
  const adapter = make(ast, revision, direction)
  slots[slot] = adapter ?? null
  return adapter
}

const make = (ast: AST.AST, revision: Revision.Revision, direction: Direction): Adapter | undefined => {
  if (AST.isObjects(ast)) return makeObject(ast, revision, direction)
  if (AST.isArrays(ast)) return makeArray(ast, revision, direction)
  if (AST.isUnion(ast)) return makeUnion(ast, revision, direction)
  if (AST.isSuspend(ast)) {
    // A recursive schema is not complete yet, so it is compiled at the first value.
    let inner: Adapter | undefined | null = null
    return (value) => {
      if (inner === null) inner = compile(ast.thunk(), revision, direction)
      return inner === undefined ? value : inner(value)
    }
  }
  return undefined
}

const makeArray = (ast: AST.Arrays, revision: Revision.Revision, direction: Direction): Adapter | undefined => {
  const elements = ast.elements.map((element) => compile(element, revision, direction))
  const rest = ast.rest[0] === undefined ? undefined : compile(ast.rest[0], revision, direction)
  if (rest === undefined && elements.every((element) => element === undefined)) return undefined
  return (value) => {
    if (!Array.isArray(value)) return value
    let out: Array<unknown> = value
    for (let i = 0; i < value.length; i++) {
      const adapter = i < elements.length ? elements[i] : rest
      if (adapter === undefined) continue
      const adapted = adapter(value[i])
      if (adapted === value[i]) continue
      if (out === value) out = value.slice()
      out[i] = adapted
    }
    return out
  }
}

/**
 * Finds the changes to the fields of an object, in the order in which they are applied. Returns `undefined` if there is
 * none.
 */
const planObject = (ast: AST.Objects, revision: Revision.Revision, direction: Direction) => {
  const drops: Array<string> = []
  const refusals: Array<readonly [key: string, name: string]> = []
  const changes: Array<readonly [key: string, adapt: Adapter]> = []
  const renames: Array<readonly [from: string, to: string]> = []
  const fills: Array<readonly [key: string, fill: () => unknown]> = []
  const required: Array<string> = []
  const known = new Set<string>()
  for (const signature of ast.propertySignatures) {
    const name = signature.name
    if (typeof name !== "string") continue
    const rule: FieldRule = fieldRule(signature.type) ?? {}
    const renamed = rule.rename !== undefined && within(rule.rename, revision) ? rule.rename.to : undefined
    const wire = renamed ?? name
    const from = direction === "lift" ? wire : name
    known.add(name).add(wire)
    const child = compile(signature.type, revision, direction)
    // Reading keeps a member outside its window: peers send members that are newer than the negotiated revision.
    if (direction === "lower" && !within(rule, revision)) {
      drops.push(name)
      if (rule.refuse !== undefined) refusals.push([name, rule.refuse])
      continue
    }
    // A change applies under the old name of each direction (the wire's when lifting); the rename follows.
    const own = direction === "lower" ? rule.lower : rule.lift
    if (own !== undefined) {
      changes.push([from, (value) => {
        const changed = own(value, revision)
        return child === undefined || changed === undefined ? changed : child(changed)
      }])
    } else if (child !== undefined) changes.push([from, child])
    if (renamed !== undefined) {
      renames.push(direction === "lift" ? [renamed, name] : [name, renamed])
      // A member that already has the new name is an unknown member, and would be mistaken for the field.
      drops.push(direction === "lift" ? name : renamed)
    }
    if (rule.default !== undefined) fills.push([direction === "lift" ? name : wire, () => rule.default])
    const fill = rule.fill
    if (direction === "lower" && fill !== undefined) fills.push([wire, () => fill(revision)])
    if (within(rule, revision) && rule.required?.(revision) === true) required.push(direction === "lift" ? name : wire)
  }
  const signature = ast.indexSignatures[0]
  const index = signature === undefined ? undefined : compile(signature.type, revision, direction)
  const steps = drops.length + changes.length + renames.length + fills.length + required.length
  return steps === 0 && index === undefined
    ? undefined
    : { drops, refusals, changes, renames, fills, required, index, known }
}

const makeObject = (ast: AST.Objects, revision: Revision.Revision, direction: Direction): Adapter | undefined => {
  const plan = planObject(ast, revision, direction)
  if (plan === undefined) return undefined
  const { changes, drops, fills, index, known, refusals, renames, required } = plan
  return (value) => {
    if (!isObject(value)) return value
    let out: Mutable = value as Mutable
    for (const [key, name] of refusals) {
      if (value[key] !== undefined) refuse(`${revision} does not support ${name}`)
    }
    for (const key of drops) {
      if (value[key] === undefined) continue
      out = without(value, drops)
      break
    }
    for (const [key, adapt] of changes) {
      const before = out[key]
      if (before === undefined) continue
      const after = adapt(before)
      if (after === before) continue
      if (after === undefined) out = without(out, [key])
      else {
        if (out === value) out = { ...value }
        out[key] = after
      }
    }
    for (const [from, to] of renames) {
      const moved = out[from]
      if (moved === undefined) continue
      out = without(out, [from])
      out[to] = moved
    }
    for (const [key, fill] of fills) {
      const before = out[key]
      if (before !== undefined && (before !== null || direction === "lower")) continue
      const filled = fill()
      if (filled === undefined) continue
      if (out === value) out = { ...value }
      out[key] = filled
    }
    for (const key of required) {
      if (out[key] !== undefined) continue
      if (direction === "lower") refuse(`${revision} requires ${key}`)
      // Validation refuses the explicit `undefined` and reports the path.
      out = { ...out, [key]: undefined }
    }
    if (index !== undefined) {
      for (const key of Object.keys(out)) {
        if (known.has(key)) continue
        const before = out[key]
        const after = index(before)
        if (after === before) continue
        if (out === value) out = { ...value }
        out[key] = after
      }
    }
    return out
  }
}

/** A member of a union: how to recognize its values (without validating them) and how to adapt them. */
interface Branch {
  readonly matches: (value: unknown) => boolean
  readonly adapt: Adapter | undefined
  readonly exists: boolean
  readonly rule: MemberRule | undefined
}

/** Makes the function that recognizes values of a schema, one level deep. */
const kindOf = (ast: AST.AST): (value: unknown) => boolean => {
  if (AST.isObjects(ast)) return isObject
  if (AST.isArrays(ast)) return Array.isArray
  if (AST.isString(ast)) return (value) => typeof value === "string"
  if (AST.isNumber(ast)) return (value) => typeof value === "number"
  if (AST.isBoolean(ast)) return (value) => typeof value === "boolean"
  if (AST.isNull(ast)) return (value) => value === null
  const values = literalsOf(ast)
  if (values !== undefined) return (value) => values.includes(value)
  return guardOf(ast) ?? ((value) => value !== undefined)
}

const matcher = (ast: AST.AST): (value: unknown) => boolean => {
  if (AST.isObjects(ast)) {
    const required: Array<readonly [string, (value: unknown) => boolean]> = []
    for (const { name, type } of ast.propertySignatures) {
      if (typeof name !== "string" || type.context?.isOptional === true) continue
      required.push([name, kindOf(type)])
    }
    return (value) => isObject(value) && required.every(([key, matches]) => matches(value[key]))
  }
  return kindOf(ast)
}

const branches = (
  ast: AST.Union,
  revision: Revision.Revision,
  direction: Direction,
  inherited?: MemberRule
): ReadonlyArray<Branch> =>
  ast.types.flatMap((type) => {
    const rule = memberRule(type) ?? inherited
    if (AST.isUnion(type)) return branches(type, revision, direction, rule)
    return [{
      matches: matcher(type),
      adapt: compile(type, revision, direction),
      exists: within(rule, revision),
      rule
    }]
  })

const makeUnion = (ast: AST.Union, revision: Revision.Revision, direction: Direction): Adapter | undefined => {
  const all = branches(ast, revision, direction)
  if (all.every((branch) => branch.adapt === undefined && (branch.exists || direction === "lift"))) return undefined
  const adapt = (value: unknown, from: Branch | undefined): unknown => {
    // When lifting, members of this revision come first: a value can match a member of another revision by chance.
    const branch = (direction === "lift" ? all.find((branch) => branch.exists && branch.matches(value)) : undefined) ??
      all.find((branch) => branch.matches(value))
    if (branch === undefined) return value
    if (branch.exists || direction === "lift") return branch.adapt === undefined ? value : branch.adapt(value)
    const degrade = branch.rule?.degrade
    // A value that degrades into the same member is refused, because degrading it would not end.
    if (degrade === undefined || branch === from) {
      return refuse(`${revision} does not support ${branch.rule?.name ?? "this value"}`)
    }
    return adapt(degrade(value, revision), branch)
  }
  return (value) => adapt(value, undefined)
}
