/** Marks the calls at the top of a module as pure, so that a bundler may drop those whose result is not used. */
import { transformAsync, type TransformOptions } from "@babel/core"

/** A source map, as JSON. */
export type SourceMap = NonNullable<TransformOptions["inputSourceMap"]>

export interface Annotated {
  readonly code: string
  readonly map: object | null | undefined
}

/** Annotates one JavaScript module. The map leads through `inputMap` back to the source, or through the map inside the code. */
export const annotate = async (code: string, filename: string, inputMap?: SourceMap): Promise<Annotated> => {
  const result = await transformAsync(code, {
    configFile: false,
    babelrc: false,
    filename,
    plugins: ["annotate-pure-calls"],
    inputSourceMap: inputMap,
    sourceMaps: inputMap === undefined ? "inline" : true,
    compact: false
  })
  if (typeof result?.code !== "string") throw new Error(`${filename}: nothing came out of the annotation`)
  return { code: result.code, map: result.map }
}
