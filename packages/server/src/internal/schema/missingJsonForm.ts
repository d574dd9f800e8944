/**
 * Finds declarations without a JSON form in a schema.
 *
 * Effect writes "any value" as the JSON Schema of such a declaration, but then refuses every value, because no JSON
 * value is an instance of a class, or a function.
 */
import * as AST from "effect/SchemaAST"

/**
 * Whether a declaration has a JSON form. A declaration that is JSON already has the annotation `toCodecJson: () =>
 * undefined`.
 */
const hasJsonForm = ({ annotations }: AST.Declaration): boolean =>
  typeof (annotations?.["toCodecJson"] ?? annotations?.["toCodec"]) === "function"

/**
 * Returns the path of the first declaration without a JSON form: empty for the schema itself, `undefined` if there is
 * none.
 */
export const findMissingJsonForm = (
  ast: AST.AST,
  seen: Set<AST.AST> = new Set()
): ReadonlyArray<string> | undefined => {
  if (seen.has(ast)) return undefined
  seen.add(ast)
  for (const [name, inner] of parts(ast)) {
    const found = findMissingJsonForm(inner, seen)
    if (found !== undefined) return name === undefined ? found : [name, ...found]
  }
  return AST.isDeclaration(ast) && ast.encoding === undefined && !hasJsonForm(ast) ? [] : undefined
}

type Part = readonly [name: string | undefined, ast: AST.AST]

const parts = (ast: AST.AST): ReadonlyArray<Part> => {
  // The encoded side decides about the JSON form.
  if (ast.encoding !== undefined) return [[undefined, ast.encoding.at(-1)!.to]]
  if (AST.isSuspend(ast)) return [[undefined, ast.thunk()]]
  if (AST.isUnion(ast)) return ast.types.map((type) => [undefined, type])
  if (AST.isDeclaration(ast)) return ast.typeParameters.map((type) => [undefined, type])
  if (AST.isArrays(ast)) return [...ast.elements, ...ast.rest].map((type) => ["[]", type])
  if (!AST.isObjects(ast)) return []
  return [
    ...ast.propertySignatures.map(({ name, type }): Part => [String(name), type]),
    ...ast.indexSignatures.map(({ type }): Part => ["*", type])
  ]
}
