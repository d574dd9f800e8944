/**
 * Marks what a module makes at its top as pure, so that a bundler may drop what is not used. This relies on a rule of the house: a
 * module of ours does nothing but make values when it is imported.
 */
import { type NodePath, type PluginObj, transformAsync, type TransformOptions, types as t } from "@babel/core"

/** A source map, as JSON. */
export type SourceMap = NonNullable<TransformOptions["inputSourceMap"]>

export interface Annotated {
  readonly code: string
  readonly map: object | null | undefined
}

/** Reading a member of a namespace import cannot run code, and a bundler knows it. Of any other object it must assume a getter. */
const isNamespace = (path: NodePath<t.MemberExpression>): boolean => {
  const { object } = path.node
  return t.isIdentifier(object) && path.scope.getBinding(object.name)?.path.isImportNamespaceSpecifier() === true
}

/** What a bundler takes for a side effect: a spread, a read that may be a getter, a conversion to a string or a number. */
const isSuspect = (path: NodePath): boolean =>
  path.isSpreadElement() ||
  (path.isMemberExpression() && path.key !== "callee" && !isNamespace(path)) ||
  path.isBinaryExpression() ||
  (path.isTemplateLiteral() && path.node.expressions.length > 0) ||
  (path.isObjectProperty() && path.node.computed)

/** Whether evaluating the expression does something suspect. One that awaits cannot move into a function, and is left alone. */
const mayRunCode = (expression: NodePath): boolean => {
  let found = false
  let awaits = false
  const judge = (path: NodePath): void => {
    if (isSuspect(path)) found = true
    if (path.isAwaitExpression()) awaits = true
  }
  judge(expression)
  expression.traverse({
    enter(path) {
      if (path.isFunction() || path.isClass()) path.skip()
      else judge(path)
    }
  })
  return found && !awaits
}

/** Whether it is a class with a static block, of which a bundler drops nothing. */
const hasStaticBlock = (path: NodePath<t.Node | null | undefined>): path is NodePath<t.ClassExpression> =>
  path.isClassExpression() && path.node.body.body.some((member) => t.isStaticBlock(member))

/**
 * `const a = 4 * 1024` becomes `4096`. `const a = f({ ...b })` becomes `const a = (() => f({ ...b }))()`, and the like for what a
 * class extends, for its static fields, and for a class with a static block: a call is dropped where it is marked as pure, whatever
 * happens inside, and a spread or a getter is not.
 */
const wrapImpure: PluginObj = {
  visitor: {
    Program(program) {
      const inCall = (path: NodePath, expression: t.Expression): void => {
        const call = t.callExpression(t.arrowFunctionExpression([], expression), [])
        path.replaceWith(t.addComment(call, "leading", "#__PURE__"))
        path.skip()
      }
      const wrap = (path: NodePath<t.Node | null | undefined>): void => {
        if (!path.isExpression() || path.isFunction() || path.isClass() || !mayRunCode(path)) return
        const { confident, value } = path.isBinaryExpression()
          ? path.evaluate()
          : { confident: false, value: undefined }
        if (confident && typeof value === "number") {
          path.replaceWith(t.numericLiteral(value))
          return
        }
        inCall(path, path.node)
      }
      program.traverse({
        Function: (path) => path.skip(),
        VariableDeclarator: (path) => {
          const init = path.get("init")
          const { id } = path.node
          if (!hasStaticBlock(init) || !t.isIdentifier(id)) return wrap(init)
          // In there it would lose the name that it has from the variable.
          init.node.id ??= t.identifier(id.name)
          inCall(init, init.node)
        },
        Class: (path) => wrap(path.get("superClass")),
        ClassProperty: (path) => {
          if (path.node.static) wrap(path.get("value"))
        }
      })
    }
  }
}

/** Annotates one JavaScript module. The map leads through `inputMap` back to the source, or through the map inside the code. */
export const annotate = async (code: string, filename: string, inputMap?: SourceMap): Promise<Annotated> => {
  const result = await transformAsync(code, {
    configFile: false,
    babelrc: false,
    filename,
    plugins: [wrapImpure, "annotate-pure-calls"],
    inputSourceMap: inputMap,
    sourceMaps: inputMap === undefined ? "inline" : true,
    compact: false
  })
  if (typeof result?.code !== "string") throw new Error(`${filename}: nothing came out of the annotation`)
  return { code: result.code, map: result.map }
}
