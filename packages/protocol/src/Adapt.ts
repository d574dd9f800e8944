/**
 * The adapters between a revision's messages and the model: *lift* (what a revision says → the model, before validation)
 * and *lower* (the model → what a revision says, when writing). Both are compiled from the annotated AST of the model, on
 * first use, once per node and revision.
 *
 * - `undefined` in place of an adapter means that nothing has to be done in that revision. Most are.
 * - A value that is not affected is passed by reference; one that is gets a shallow copy. Unknown members always stay.
 * - An adapter does not validate. It is total on any input when lifting; when lowering it throws an `Unrepresentable`, or
 *   what a rule throws that is given no value of the model. `Codec` turns both into a value.
 */
import * as AST from "effect/SchemaAST"
import { type FieldRule, fieldRule, guardOf, type MemberRule, memberRule, refuse, type Window } from "./Annotate.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import * as Revision from "./Revision.ts"

/** From older to newer, or from newer to older. */
export type Direction = "lift" | "lower"

/** One compiled adapter. */
export type Adapter = (value: unknown) => unknown

interface Mutable {
  [key: string]: unknown
}

const within = (window: Window | undefined, revision: Revision.Revision): boolean =>
  window === undefined || Revision.within(revision, window.since, window.until)

// Compiled adapters, by AST node: two slots per revision. `null` is a compiled identity.
const compiled = new WeakMap<AST.AST, Array<Adapter | null | undefined>>()

/** The adapter of a schema's AST for a revision, or `undefined` when there is nothing to adapt. */
export const compile = (ast: AST.AST, revision: Revision.Revision, direction: Direction): Adapter | undefined => {
  let slots = compiled.get(ast)
  if (slots === undefined) compiled.set(ast, slots = [])
  const slot = Revision.indexOf(revision) * 2 + (direction === "lift" ? 0 : 1)
  const known = slots[slot]
  if (known !== undefined) return known ?? undefined
  const made = make(ast, revision, direction)
  slots[slot] = made ?? null
  return made
}

const make = (ast: AST.AST, revision: Revision.Revision, direction: Direction): Adapter | undefined => {
  if (AST.isObjects(ast)) return makeObject(ast, revision, direction)
  if (AST.isArrays(ast)) return makeArray(ast, revision, direction)
  if (AST.isUnion(ast)) return makeUnion(ast, revision, direction)
  if (AST.isSuspend(ast)) {
    // What a recursive schema needs is known only when it is complete: decide at the first value.
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

/** What has to be done to the fields of one kind of object. */
interface ObjectPlan {
  readonly drops: ReadonlyArray<string>
  readonly refusals: ReadonlyArray<readonly [key: string, name: string]>
  readonly changes: ReadonlyArray<readonly [key: string, adapt: Adapter]>
  readonly renames: ReadonlyArray<readonly [from: string, to: string]>
  readonly fills: ReadonlyArray<readonly [key: string, fill: () => unknown]>
  readonly required: ReadonlyArray<string>
  readonly index: Adapter | undefined
  readonly known: ReadonlySet<string>
}

const planObject = (ast: AST.Objects, revision: Revision.Revision, direction: Direction): ObjectPlan | undefined => {
  const drops: Array<string> = []
  const refusals: Array<readonly [string, string]> = []
  const changes: Array<readonly [string, Adapter]> = []
  const renames: Array<readonly [string, string]> = []
  const fills: Array<readonly [string, () => unknown]> = []
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
    if (!within(rule, revision)) {
      drops.push(name)
      if (direction === "lower" && rule.refuse !== undefined) refusals.push([name, rule.refuse])
      if (direction === "lift" && "default" in rule) fills.push([name, () => rule.default])
      continue
    }
    // Reading changes what comes under the name of the wire, and renames at the end; so does writing, from its own name.
    const own = direction === "lower" ? rule.lower : rule.lift
    if (own !== undefined) {
      changes.push([from, (value) => {
        const changed = own(value, revision)
        return child === undefined || changed === undefined ? changed : child(changed)
      }])
    } else if (child !== undefined) changes.push([from, child])
    if (renamed !== undefined) {
      renames.push(direction === "lift" ? [renamed, name] : [name, renamed])
      // What goes by the new name already is an unknown member that would be taken for the field.
      drops.push(direction === "lift" ? name : renamed)
    }
    if ("default" in rule) fills.push([direction === "lift" ? name : wire, () => rule.default])
    const fill = rule.fill
    if (direction === "lower" && fill !== undefined) fills.push([wire, () => fill(revision)])
    if (rule.required?.(revision) === true) required.push(direction === "lift" ? name : wire)
  }
  const signature = ast.indexSignatures[0]
  const index = signature === undefined ? undefined : compile(signature.type, revision, direction)
  const steps = drops.length + changes.length + renames.length + fills.length + required.length
  return steps === 0 && index === undefined
    ? undefined
    : { drops, refusals, changes, renames, fills, required, index, known }
}

/** A copy without some members. An own `__proto__` stays an own member: it is defined, never assigned. */
const without = (value: JsonObject, drops: ReadonlyArray<string>): Mutable => {
  const out: Mutable = {}
  for (const key of Object.keys(value)) {
    if (drops.includes(key)) continue
    if (key === "__proto__") {
      Object.defineProperty(out, key, { value: value[key], enumerable: true, configurable: true, writable: true })
    } else out[key] = value[key]
  }
  return out
}

const makeObject = (ast: AST.Objects, revision: Revision.Revision, direction: Direction): Adapter | undefined => {
  const plan = planObject(ast, revision, direction)
  if (plan === undefined) return undefined
  const { changes, drops, fills, index, known, refusals, renames, required } = plan
  return (value) => {
    if (!isObject(value)) return value
    let out: Mutable = value as Mutable
    for (const [key, name] of refusals) {
      if (value[key] !== undefined) refuse(`${revision} has no ${name}`)
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
      if (out[key] !== undefined) continue
      const filled = fill()
      if (filled === undefined) continue
      if (out === value) out = { ...value }
      out[key] = filled
    }
    for (const key of required) {
      if (out[key] !== undefined) continue
      if (direction === "lower") refuse(`${revision} requires ${key}`)
      // An explicit `undefined` is what validation refuses, and it knows the path.
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

/** How to recognise a member of a union (not whether the value is valid), and what to do with it. */
interface Branch {
  readonly matches: (value: unknown) => boolean
  readonly adapt: Adapter | undefined
  readonly exists: boolean
  readonly rule: MemberRule | undefined
}

const literalsOf = (ast: AST.AST): ReadonlyArray<unknown> | undefined => {
  if (AST.isLiteral(ast)) return [ast.literal]
  if (AST.isUnion(ast) && ast.types.length > 0 && ast.types.every(AST.isLiteral)) {
    return ast.types.map((type) => (type as AST.Literal).literal)
  }
  return undefined
}

/** Tells the kind of a value, one level deep. */
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
    // When reading, a member of this revision first: what looks like another one as well does so by chance.
    const branch = (direction === "lift" ? all.find((branch) => branch.exists && branch.matches(value)) : undefined) ??
      all.find((branch) => branch.matches(value))
    if (branch === undefined) return value
    if (branch.exists || direction === "lift") return branch.adapt === undefined ? value : branch.adapt(value)
    const degrade = branch.rule?.degrade
    // What was degraded into itself is refused, so that this ends.
    if (degrade === undefined || branch === from) {
      return refuse(`${revision} has no ${branch.rule?.name ?? "such value"}`)
    }
    return adapt(degrade(value, revision), branch)
  }
  return (value) => adapt(value, undefined)
}
