/**
 * Methods that the servers of other libraries have. They throw, and their types name the method of an `AsyncServer`: the
 * compiler shows it as the type of the first argument.
 */
const useTool = "use server.tool(name, { input }, async ({ … }) => …)"
const useResource = "use server.resource(uri, options, async () => …)"
const useTemplate = "use server.template(uriTemplate, options, async ({ … }) => …)"
const usePrompt = "use server.prompt(name, { arguments }, async ({ … }) => …)"
const useRun = "use server.runStdio(), server.runHttp() or await server.listen()"

type Arguments<Use extends string> = readonly [Capitalize<Use>, ...ReadonlyArray<unknown>]

const noMethod = (name: string, use: string): TypeError => new TypeError(`An AsyncServer has no method ${name}: ${use}`)

export class ForeignMethods {
  /** @deprecated The method is `tool`. */
  addTool(...given: Arguments<typeof useTool>): never
  addTool(): never {
    throw noMethod("addTool", useTool)
  }

  /** @deprecated The method is `tool`. */
  registerTool(...given: Arguments<typeof useTool>): never
  registerTool(): never {
    throw noMethod("registerTool", useTool)
  }

  /** @deprecated The method is `resource`. */
  addResource(...given: Arguments<typeof useResource>): never
  addResource(): never {
    throw noMethod("addResource", useResource)
  }

  /** @deprecated The method is `resource`. */
  registerResource(...given: Arguments<typeof useResource>): never
  registerResource(): never {
    throw noMethod("registerResource", useResource)
  }

  /** @deprecated The method is `template`. */
  addResourceTemplate(...given: Arguments<typeof useTemplate>): never
  addResourceTemplate(): never {
    throw noMethod("addResourceTemplate", useTemplate)
  }

  /** @deprecated The method is `prompt`. */
  addPrompt(...given: Arguments<typeof usePrompt>): never
  addPrompt(): never {
    throw noMethod("addPrompt", usePrompt)
  }

  /** @deprecated The method is `prompt`. */
  registerPrompt(...given: Arguments<typeof usePrompt>): never
  registerPrompt(): never {
    throw noMethod("registerPrompt", usePrompt)
  }

  /** @deprecated The methods are `runStdio`, `runHttp` and `listen`. */
  connect(...given: Arguments<typeof useRun>): never
  connect(): never {
    throw noMethod("connect", useRun)
  }

  /** @deprecated The methods are `runStdio`, `runHttp` and `listen`. */
  start(...given: Arguments<typeof useRun>): never
  start(): never {
    throw noMethod("start", useRun)
  }
}
