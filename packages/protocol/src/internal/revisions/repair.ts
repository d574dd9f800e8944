/**
 * Reads the readable part of a value that its schema refuses. `Codec` uses it after a validation failed, so that values
 * without a fault cost nothing.
 *
 * - `null` for an optional member, or for an entry of a record, reads as absent. An absent required member with the rule
 *   `absent` has the value of that rule.
 * - A malformed member outside its window of revisions is an unknown member, and is left out.
 * - With `ignored`, a malformed optional member and a malformed item of a list are left out, and a `null` for a list is
 *   read as an empty one. `ignored` receives a line for each of them. Members with the rule `essential` or `refuse` are
 *   not left out.
 * - With `ignored`, a value that its schema does not allow is replaced by the `fallback` of the schema, if it has one.
 *
 * A value that is still malformed is refused with the first problem that could not be left out.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { fallbackOf, type FieldRule, fieldRule } from "../../Annotate.ts"
import { isObject, type JsonObject } from "../../JsonRpc.ts"
import * as Revision from "../../Revision.ts"
import { clip, printable } from "../../Text.ts"

type Validate = (value: unknown) => Result.Result<unknown, SchemaIssue.Issue>

const validators = new WeakMap<AST.AST, Validate>()

/** Returns the compiled validator of an AST node. */
export const validatorOf = (ast: AST.AST): Validate => {
  let validate = validators.get(ast)
  if (validate === undefined) {
    validate = SchemaParser.decodeUnknownResult(Schema.make<Schema.Codec<unknown>>(ast)) as Validate
    validators.set(ast, validate)
  }
  return validate
}

type Path = ReadonlyArray<PropertyKey>

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const showPath = (root: string, path: Path): string =>
  path.reduce<string>((shown, key) => {
    if (typeof key === "number") return `${shown}[${key}]`
    const name = clip(String(key))
    return /^[A-Za-z_$][\w$]*$/.test(name) ? `${shown}.${name}` : `${shown}[${JSON.stringify(name)}]`
  }, root)

/** Describes the deepest problem of an issue in one line. In a union that is a problem of the closest member. */
export const describe = (issue: SchemaIssue.Issue, root: string, base: Path = []): string => {
  let deepest: { readonly path: Path; readonly message: string } | undefined
  for (const { message, path } of format(issue).issues) {
    const keys = (path ?? []).map((segment) => typeof segment === "object" ? segment.key : segment)
    if (deepest === undefined || keys.length > deepest.path.length) deepest = { path: keys, message }
  }
  return deepest === undefined
    ? `${showPath(root, base)}: invalid`
    : printable(`${showPath(root, [...base, ...deepest.path])}: ${deepest.message.split("\n")[0]}`, Infinity)
}

/** Returns the values of a literal, or of a union of literals. */
export const literalsOf = (ast: AST.AST): ReadonlyArray<unknown> | undefined => {
  if (AST.isLiteral(ast)) return [ast.literal]
  if (AST.isUnion(ast) && ast.types.length > 0 && ast.types.every(AST.isLiteral)) {
    return ast.types.map((type) => (type as AST.Literal).literal)
  }
  return undefined
}

/** Copies an object without some members. An own `__proto__` is defined, not assigned, so that it stays an own member. */
export const without = (value: JsonObject, keys: ReadonlyArray<string>): { [key: string]: unknown } => {
  const out: { [key: string]: unknown } = {}
  for (const key of Object.keys(value)) {
    if (keys.includes(key)) continue
    if (key === "__proto__") {
      Object.defineProperty(out, key, { value: value[key], enumerable: true, configurable: true, writable: true })
    } else out[key] = value[key]
  }
  return out
}

const isOptional = (type: AST.AST): boolean => type.context?.isOptional === true

/** Whether the value may be of a member of a union, by the literals that the member requires. */
const mayBe = (ast: AST.AST, value: unknown): boolean =>
  !AST.isObjects(ast) || (isObject(value) && ast.propertySignatures.every(({ name, type }) => {
    const literals = isOptional(type) ? undefined : literalsOf(type)
    return literals === undefined || literals.includes(value[name as string])
  }))

// A message names at most this many members that were left out.
const maxIgnored = 64

const unreadable = Symbol("unreadable")

class Repair {
  readonly #revision: Revision.Revision
  readonly #ignored: Array<string> | undefined
  readonly #root: string
  readonly #path: Array<PropertyKey> = []
  #problem: (() => string) | undefined = undefined

  constructor(revision: Revision.Revision, root: string, ignored: Array<string> | undefined) {
    this.#revision = revision
    this.#root = root
    this.#ignored = ignored
  }

  /** The reason why the value is unreadable. */
  get problem(): string {
    return this.#problem?.() ?? `${this.#root}: invalid`
  }

  /** Reads a value. With `isWhole`, no item of a list and no entry of a record is left out. */
  read(ast: AST.AST, value: unknown, isWhole: boolean): unknown {
    if (AST.isSuspend(ast)) return this.read(ast.thunk(), value, isWhole)
    if (AST.isUnion(ast)) return this.#union(ast, value, isWhole)
    if (AST.isObjects(ast) && isObject(value)) return this.#object(ast, value, isWhole)
    if (AST.isArrays(ast) && ast.elements.length === 0 && Array.isArray(value)) return this.#list(ast, value, isWhole)
    return this.#leaf(ast, value)
  }

  #leaf(ast: AST.AST, value: unknown): unknown {
    const validated = validatorOf(ast)(value)
    if (Result.isSuccess(validated)) return value
    const path = [...this.#path]
    this.#problem = () => describe(validated.failure, this.#root, path)
    return this.#fallback(ast, value)
  }

  /** The value that the schema has for a value that it does not allow. */
  #fallback(ast: AST.AST, value: unknown): unknown {
    const instead = this.#ignored === undefined ? undefined : fallbackOf(ast)?.(value)
    return instead !== undefined && this.#ignore() ? instead : unreadable
  }

  #at(key: PropertyKey, ast: AST.AST, value: unknown, isWhole: boolean): unknown {
    this.#path.push(key)
    const read = this.read(ast, value, isWhole)
    this.#path.pop()
    return read
  }

  #object(ast: AST.Objects, value: JsonObject, isWhole: boolean): unknown {
    let out: { [key: string]: unknown } = value as { [key: string]: unknown }
    const known = new Set<string>()
    for (const { name, type } of ast.propertySignatures) {
      if (typeof name !== "string") continue
      known.add(name)
      const given = out[name]
      if (given === undefined && isOptional(type) && !Object.hasOwn(out, name)) continue
      const rule = fieldRule(type)
      const read = (given ?? undefined) === undefined && rule?.absent !== undefined
        ? rule.absent
        : given === null && this.#ignored !== undefined && !isOptional(type) && AST.isArrays(type)
        ? []
        : given === undefined && !Object.hasOwn(out, name)
        ? this.#missing(name, type)
        : this.#at(name, type, given, rule?.essential === true)
      if (read === given) continue
      if (read !== unreadable) out = this.#with(value, out, name, read)
      else if (!this.#mayLeaveOut(isOptional(type), rule, given)) return unreadable
      else out = this.#with(value, out, name, rule?.default)
    }
    const entries = ast.indexSignatures[0]
    if (entries === undefined) return out
    for (const key of Object.keys(out)) {
      if (known.has(key)) continue
      const given = out[key]
      const read = this.#at(key, entries.type, given, false)
      if (read === given) continue
      if (read !== unreadable) out = this.#with(value, out, key, read)
      else if (!this.#mayLeaveOut(!isWhole || given === null, undefined, given)) return unreadable
      else out = this.#with(value, out, key, undefined)
    }
    return out
  }

  /** Sets a member of the copy, which is made once; `undefined` removes the member. */
  #with(value: JsonObject, out: { [key: string]: unknown }, key: string, member: unknown): { [key: string]: unknown } {
    const copy = out === value ? without(value, []) : out
    if (member === undefined) delete copy[key]
    else Object.defineProperty(copy, key, { value: member, enumerable: true, configurable: true, writable: true })
    return copy
  }

  #missing(name: string, type: AST.AST): unknown {
    const path = [...this.#path, name]
    this.#problem = () => `${showPath(this.#root, path)}: Missing key`
    return this.#fallback(type, undefined)
  }

  #list(ast: AST.Arrays, value: ReadonlyArray<unknown>, isWhole: boolean): unknown {
    const item = ast.rest[0]
    if (item === undefined) return this.#leaf(ast, value)
    let out: Array<unknown> | undefined
    for (let index = 0; index < value.length; index++) {
      const given = value[index]
      const read = this.#at(index, item, given, isWhole)
      if (read === unreadable) {
        if (isWhole || !this.#ignore()) return unreadable
        out ??= value.slice(0, index)
      } else if (out !== undefined) out.push(read)
      else if (read !== given) out = [...value.slice(0, index), read]
    }
    return out ?? value
  }

  #union(ast: AST.Union, value: unknown, isWhole: boolean): unknown {
    const count = this.#ignored?.length
    const problem = this.#problem
    for (const type of ast.types) {
      if (!mayBe(type, value)) continue
      const read = this.read(type, value, isWhole)
      if (read !== unreadable) return read
      if (count !== undefined) this.#ignored!.length = count
      this.#problem = problem
    }
    return this.#leaf(ast, value)
  }

  /** Whether the message keeps its meaning without a malformed member. */
  #mayLeaveOut(isOptional: boolean, rule: FieldRule | undefined, given: unknown): boolean {
    if (!isOptional || rule?.required?.(this.#revision) === true) return false
    const isUnknown = rule !== undefined && !Revision.within(this.#revision, rule.since, rule.until)
    if (given === null || (isUnknown && this.#ignored === undefined)) {
      this.#problem = undefined
      return true
    }
    return (isUnknown || (rule?.essential !== true && rule?.refuse === undefined)) && this.#ignore()
  }

  #ignore(): boolean {
    const ignored = this.#ignored
    if (ignored === undefined) return false
    if (ignored.length < maxIgnored) ignored.push(this.problem)
    this.#problem = undefined
    return true
  }
}

/**
 * Reads the readable part of a value that its schema refused. The module's comment has the rules. `root` is the first
 * segment of the path in the lines.
 */
export const repair = (
  ast: AST.AST,
  revision: Revision.Revision,
  value: unknown,
  root: string,
  ignored: Array<string> | undefined
): Result.Result<unknown, string> => {
  const reader = new Repair(revision, root, ignored)
  const read = reader.read(ast, value, false)
  if (read === unreadable) return Result.fail(reader.problem)
  const validated = validatorOf(ast)(read)
  return Result.isSuccess(validated) ? Result.succeed(read) : Result.fail(describe(validated.failure, root))
}
