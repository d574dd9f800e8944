/**
 * Marks the calls at the top level of a module as pure, so that a bundler drops the values that a program does not use.
 * This relies on a rule of the repository: importing a module creates values and has no other effect.
 *
 * Of the other comments only the names of the sources are kept, and characters outside of ASCII are escaped, so that a
 * program starts faster: Node reads a file with one such character as text of two bytes per character. Declarations and
 * sources have all comments.
 */
import { type NodePath, type PluginObj, transformAsync, type TransformOptions, types as t } from "@babel/core"

/** A source map, as JSON. */
export type SourceMap = NonNullable<TransformOptions["inputSourceMap"]>

export interface Annotated {
  readonly code: string
  readonly map: object | null | undefined
}

/** Reading a member of a namespace import cannot run code. For any other object a bundler must assume a getter. */
const isNamespace = (path: NodePath<t.MemberExpression>): boolean => {
  const { object } = path.node
  return t.isIdentifier(object) && path.scope.getBinding(object.name)?.path.isImportNamespaceSpecifier() === true
}

/**
 * Whether a bundler treats the node as a side effect: a spread, a read that may call a getter, a conversion to string
 * or number.
 */
const isSuspect = (path: NodePath): boolean =>
  path.isSpreadElement() ||
  (path.isMemberExpression() && path.key !== "callee" && !isNamespace(path)) ||
  path.isBinaryExpression() ||
  (path.isTemplateLiteral() && path.node.expressions.length > 0) ||
  (path.isObjectProperty() && path.node.computed)

/**
 * Whether evaluating the expression may run code. An expression with `await` cannot move into a function, and is not
 * changed.
 */
const mayRunCode = (expression: NodePath): boolean => {
  let found = false
  let awaits = false
  const inspect = (path: NodePath): void => {
    if (isSuspect(path)) found = true
    if (path.isAwaitExpression()) awaits = true
  }
  inspect(expression)
  expression.traverse({
    enter(path) {
      if (path.isFunction() || path.isClass()) path.skip()
      else inspect(path)
    }
  })
  return found && !awaits
}

/** Whether the node is a class with a static block. A bundler never drops such a class. */
const hasStaticBlock = (path: NodePath<t.Node | null | undefined>): path is NodePath<t.Class> =>
  path.isClass() && path.node.body.body.some((member) => t.isStaticBlock(member))

/**
 * Turns `const a = 4 * 1024` into `4096`, and `const a = f({ ...b })` into a pure call, `const a = (() => f({ ...b
 * }))()`. The same applies to the superclass and the static fields of a class, and to a class with a static block. A
 * bundler drops a call that is marked as pure whatever its function contains, but it does not drop a spread or a
 * getter.
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
          if (!hasStaticBlock(init) || !init.isClassExpression() || !t.isIdentifier(id)) return wrap(init)
          // Inside the function the class would lose the name that the variable gives it.
          init.node.id ??= t.identifier(id.name)
          inCall(init, init.node)
        },
        ClassDeclaration: (path) => {
          const { id } = path.node
          if (!hasStaticBlock(path) || !t.isIdentifier(id)) return
          const expression = t.toExpression(path.node)
          path.replaceWith(t.variableDeclaration("const", [t.variableDeclarator(t.cloneNode(id), expression)]))
        },
        Class: (path) => wrap(path.get("superClass")),
        ClassProperty: (path) => {
          if (path.node.static) wrap(path.get("value"))
        }
      })
    }
  }
}

const escaped = (text: string): string =>
  text.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** Escapes the characters outside of ASCII in strings, templates and regular expressions. */
const escapeUnicode: PluginObj = {
  visitor: {
    StringLiteral: ({ node }) => {
      const raw: unknown = node.extra?.["raw"]
      if (typeof raw === "string") node.extra = { ...node.extra, raw: escaped(raw) }
    },
    TemplateElement: ({ node }) => {
      node.value.raw = escaped(node.value.raw)
    },
    RegExpLiteral: ({ node }) => {
      node.pattern = escaped(node.pattern)
    }
  }
}

/** Annotates one JavaScript module. The returned map is combined with `inputMap`, or with the map inside the code. */
export const annotate = async (code: string, filename: string, inputMap?: SourceMap): Promise<Annotated> => {
  const result = await transformAsync(code, {
    configFile: false,
    babelrc: false,
    filename,
    plugins: [wrapImpure, "annotate-pure-calls", escapeUnicode],
    shouldPrintComment: (comment) => /__PURE__|^ src\//.test(comment),
    inputSourceMap: inputMap,
    sourceMaps: inputMap === undefined ? "inline" : true,
    compact: false
  })
  if (typeof result?.code !== "string") throw new Error(`${filename}: Babel returned no code`)
  return { code: result.code, map: result.map }
}
