/** The signatures and types of the API reference, as the sources have them. */
import { type Application, Converter, type Reflection, ReflectionKind } from "typedoc"
import { MarkdownTheme } from "typedoc-plugin-markdown"
import ts from "typescript"

const isOfDependency = (node: ts.Node): boolean => node.getSourceFile().isDeclarationFile

/** A part of a file, without the indentation of its first line and without comments, which the page has below it. */
const slice = ({ text }: ts.SourceFile, start: number, end: number): string => {
  const line = text.slice(text.lastIndexOf("\n", start) + 1, start)
  const [indentation = ""] = /^ */.exec(line) ?? []
  const comments = /^ *(?:\/\/.*|\/\*\*[^]*?\*\/)\n/gm
  return text.slice(start, end).replaceAll(comments, "").replaceAll(`\n${indentation}`, "\n")
}

/** A signature from its type parameters to its return type, which the compiler adds where the source has none. */
const signatureOf = (node: ts.SignatureDeclaration, signature: ts.Signature, checker: ts.TypeChecker): string => {
  const { parameters, type, typeParameters } = node
  const file = node.getSourceFile()
  const start = (typeParameters ?? parameters).pos - 1
  if (type !== undefined) return slice(file, start, type.end)
  const head = slice(file, start, file.text.indexOf(")", parameters.end) + 1)
  if (ts.isConstructorDeclaration(node)) return head
  return `${head}: ${checker.typeToString(signature.getReturnType(), node, ts.TypeFormatFlags.NoTruncation)}`
}

/** A type alias, or a property or constant with a type. A symbol may be a constant and a type. */
const declarationOf = (kind: ReflectionKind, nodes: ReadonlyArray<ts.Declaration>): string | undefined => {
  for (const node of nodes) {
    const isConstant = kind === ReflectionKind.Variable && ts.isVariableDeclaration(node)
    const isType = kind === ReflectionKind.TypeAlias && ts.isTypeAliasDeclaration(node)
    const isProperty = kind === ReflectionKind.Property &&
      (ts.isPropertySignature(node) || ts.isPropertyDeclaration(node))
    if (!(isConstant || isType || isProperty) || node.type === undefined || isOfDependency(node)) continue
    const text = slice(node.getSourceFile(), node.getStart(), node.type.end).replace(/^(?:export |override )+/, "")
    return isConstant ? `const ${text}` : text
  }
  return undefined
}

/** The tables without descriptions, and the type of the result, which repeat the signature above them. */
const repeated = [
  /^#+ (?:Type )?Parameters\n+\| (?:Type )?Parameter \|(?: Type \|)?(?: Default (?:type|value) \|)?\n(?:\|.*\n?)+\n*/gm,
  /^#+ Returns\n+(?!```)[`([].*(?:\n +.*)*\n*(?=\n#|\n*$)/gm
]

const withoutRepetition = (text: string): string => repeated.reduce((rest, part) => rest.replaceAll(part, ""), text)

const block = (text: string): string => `\`\`\`ts\n${text}\n\`\`\``

/**
 * Lets an application print the sources. TypeDoc's own signatures have no types of parameters, and each member of a union
 * on a line of its own.
 */
export const printSources = (app: Application): void => {
  const signatures = new WeakMap<Reflection, string>()
  const declarations = new WeakMap<Reflection, string>()
  app.converter.on(Converter.EVENT_CREATE_SIGNATURE, (context, reflection, node, signature) => {
    if (node === undefined || signature === undefined || isOfDependency(node)) return
    signatures.set(reflection, signatureOf(node as ts.SignatureDeclaration, signature, context.checker))
  })
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    const text = declarationOf(reflection.kind, context.getSymbolFromReflection(reflection)?.declarations ?? [])
    if (text !== undefined) declarations.set(reflection, text)
  })
  const theme = class extends MarkdownTheme {
    override getRenderContext(page: Parameters<MarkdownTheme["getRenderContext"]>[0]) {
      const context = super.getRenderContext(page)
      const { declaration, declarationTitle, signature, signatureTitle } = context.partials
      context.partials.signatureTitle = (model, options) => {
        const text = signatures.get(model)
        const title = signatureTitle(model, options)
        // The title begins with the keyword, the modifiers and the name.
        return text === undefined ? title : block(title.slice("```ts\n".length, title.search(/[<(]/)) + text)
      }
      context.partials.signature = (model, options) => {
        const text = signature(model, options)
        return signatures.has(model) ? withoutRepetition(text) : text
      }
      context.partials.declaration = (model, options) => {
        const text = declaration(model, options)
        return declarations.has(model) ? withoutRepetition(text) : text
      }
      context.partials.declarationTitle = (model) => {
        const text = declarations.get(model)
        return text === undefined ? declarationTitle(model) : block(text)
      }
      return context
    }
  }
  app.renderer.defineTheme("skein", theme as never)
}
