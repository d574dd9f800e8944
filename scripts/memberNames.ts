/**
 * Reads the names of the members of a class, an interface or an object type from the sources: its own ones, and those of the
 * types that it extends. Names of utility types (`Omit`, `Pick`, `Readonly`) are understood.
 */
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { type ESTree, parseSync } from "rolldown/utils"

/** Returns the file of an import, or undefined for a package outside of the repository. */
export type Resolve = (specifier: string, from: string) => string | undefined

type Names = ReadonlySet<string>

const parsed = new Map<string, ESTree.Program>()

const programOf = (path: string): ESTree.Program => {
  const known = parsed.get(path)
  if (known !== undefined) return known
  const { program } = parseSync(path, readFileSync(path, "utf8"))
  parsed.set(path, program)
  return program
}

const declarationOf = (statement: ESTree.Program["body"][number]) =>
  statement.type === "ExportNamedDeclaration" && statement.declaration !== null ? statement.declaration : statement

/** A name where it is declared or imported. */
const textOf = (node: { readonly type: string; readonly name?: string; readonly value?: unknown }): string =>
  node.name ?? String(node.value)

const union = (parts: ReadonlyArray<Names>): Names => new Set(parts.flatMap((part) => [...part]))

/** Makes a reader of members. */
export const makeMemberNames = (resolve: Resolve) => {
  /** The members of a key: private ones, computed ones and those of symbols have no name. */
  const keyOf = (member: {
    readonly key: { readonly type: string; readonly name?: string; readonly value?: unknown }
    readonly computed?: boolean
    readonly static?: boolean
    readonly accessibility?: string | null
  }): ReadonlyArray<string> =>
    member.static === true || member.computed === true || member.key.type === "PrivateIdentifier" ||
      member.accessibility === "private"
      ? []
      : [textOf(member.key)]

  const ofBody = (body: ReadonlyArray<object>): Names =>
    new Set(
      (body as ReadonlyArray<Parameters<typeof keyOf>[0] & { readonly type: string }>).flatMap((member) =>
        "key" in member && member.key !== undefined ? keyOf(member) : []
      ).filter((name) => name !== "constructor")
    )

  const literals = (type: ESTree.TSType | undefined): Names => {
    if (type === undefined) return new Set()
    if (type.type === "TSUnionType") return union(type.types.map(literals))
    return new Set(type.type === "TSLiteralType" && "value" in type.literal ? [String(type.literal.value)] : [])
  }

  const ofReference = (
    name: string,
    args: ReadonlyArray<ESTree.TSType>,
    path: string
  ): Names => {
    const [first, second] = args
    switch (name) {
      case "Omit":
        return new Set([...ofType(first!, path)].filter((member) => !literals(second).has(member)))
      case "Pick":
        return literals(second)
      case "Readonly":
      case "Partial":
      case "Required":
        return ofType(first!, path)
      case "AsyncDisposable":
        return new Set()
      default:
        return members(path, name) ?? new Set()
    }
  }

  const ofType = (type: ESTree.TSType, path: string): Names => {
    switch (type.type) {
      case "TSTypeLiteral":
        return ofBody(type.members)
      case "TSIntersectionType":
      case "TSUnionType":
        return union(type.types.map((part) => ofType(part, path)))
      case "TSParenthesizedType":
        return ofType(type.typeAnnotation, path)
      case "TSTypeReference":
        return type.typeName.type === "Identifier"
          ? ofReference(type.typeName.name, type.typeArguments?.params ?? [], path)
          : type.typeName.type === "TSQualifiedName" && type.typeName.left.type === "Identifier"
          ? ofNamespace(type.typeName.left.name, type.typeName.right.name, path)
          : new Set()
      case "TSIndexedAccessType":
        // `Service["Service"]` of Effect: the members of the service.
        return ofType(type.objectType, path)
      default:
        return new Set()
    }
  }

  /** The members of a class that is made by calls, with type arguments: `Context.Service<A, { … }>()("…")`. */
  const ofCall = (call: ESTree.Expression, path: string): Names => {
    if (call.type !== "CallExpression") return new Set()
    const own = call.typeArguments?.params ?? []
    return union([ofCall(call.callee as ESTree.Expression, path), ...own.slice(-1).map((type) => ofType(type, path))])
  }

  const ofNamespace = (namespace: string, name: string, path: string): Names => {
    for (const statement of programOf(path).body) {
      if (statement.type !== "ImportDeclaration") continue
      if (
        !statement.specifiers.some(({ local, type }) => type === "ImportNamespaceSpecifier" && local.name === namespace)
      ) {
        continue
      }
      const file = resolve(statement.source.value, path)
      return (file === undefined ? undefined : members(file, name)) ?? new Set()
    }
    return new Set()
  }

  /** The members of a declared name, or of an imported or re-exported one. Undefined if there is no such name. */
  const members = (path: string, name: string): Names | undefined => {
    const { body } = programOf(path)
    for (const statement of body) {
      const declared = declarationOf(statement)
      if (declared.type === "ClassDeclaration" && declared.id?.name === name) {
        const { superClass } = declared
        const inherited = superClass === null
          ? new Set<string>()
          : superClass.type === "Identifier"
          ? members(path, superClass.name) ?? new Set<string>()
          : ofCall(superClass, path)
        return union([ofBody(declared.body.body), inherited])
      }
      if (declared.type === "TSInterfaceDeclaration" && declared.id.name === name) {
        const inherited = declared.extends.map(({ expression, typeArguments }) =>
          expression.type === "Identifier"
            ? ofReference(expression.name, typeArguments?.params ?? [], path)
            : expression.type === "MemberExpression" && expression.object.type === "Identifier"
            ? ofNamespace(expression.object.name, textOf(expression.property as never), path)
            : new Set<string>()
        )
        return union([ofBody(declared.body.body), ...inherited])
      }
      if (declared.type === "TSTypeAliasDeclaration" && declared.id.name === name) {
        return ofType(declared.typeAnnotation, path)
      }
      if (declared.type === "VariableDeclaration") {
        for (const { id } of declared.declarations) {
          if (id.type !== "Identifier" || id.name !== name || id.typeAnnotation == null) continue
          return ofType(id.typeAnnotation.typeAnnotation, path)
        }
      }
    }
    for (const statement of body) {
      if (statement.type === "ImportDeclaration") {
        const found = statement.specifiers.find(({ local, type }) => type === "ImportSpecifier" && local.name === name)
        if (found?.type !== "ImportSpecifier") continue
        const file = resolve(statement.source.value, path)
        if (file !== undefined) return members(file, textOf(found.imported as never))
      } else if (statement.type === "ExportNamedDeclaration" && statement.source !== null) {
        const found = statement.specifiers.find(({ exported }) => textOf(exported as never) === name)
        if (found === undefined) continue
        const file = resolve(statement.source.value, path)
        if (file !== undefined) return members(file, textOf(found.local as never))
      } else if (statement.type === "ExportAllDeclaration" && statement.exported === null) {
        const file = resolve(statement.source.value, path)
        const found = file === undefined ? undefined : members(file, name)
        if (found !== undefined) return found
      }
    }
    return undefined
  }

  return members
}

/** Resolves relative imports only. */
export const resolveRelative: Resolve = (specifier, from) => {
  if (!specifier.startsWith(".")) return undefined
  const path = join(dirname(from), specifier)
  return existsSync(path) ? path : undefined
}
