/**
 * The code that runs in the sandbox before the program. It makes the globals of the program of four functions of the
 * thread, and returns two functions for the thread. A program that replaces built-in functions harms only itself: the
 * thread checks everything that it receives.
 *
 * All texts are passed as JSON in both directions: the engine cuts a string at its first NUL.
 */
export const prelude = `(function (call, log, done, failed) {
  "use strict"
  const { stringify, parse } = JSON
  const { apply, get, set, remove } = {
    apply: Reflect.apply,
    get: Map.prototype.get,
    set: Map.prototype.set,
    remove: Map.prototype.delete
  }
  const waiting = new Map()

  const textOf = (value) => {
    if (typeof value === "string") return value
    try {
      if (value instanceof Error) return value.stack ? String(value) + "\\n" + value.stack : String(value)
      const json = typeof value === "bigint" ? undefined : stringify(value)
      return json === undefined ? String(value) : json
    } catch {
      return "[a value without text]"
    }
  }

  const callTool = (name, args = {}) => {
    // Made here, so that its stack has the line of the call.
    const failure = new Error()
    return new Promise((resolve, reject) => {
      if (typeof name !== "string") throw new TypeError("the name of a tool must be a string")
      if (typeof args !== "object" || args === null || Array.isArray(args)) {
        throw new TypeError("the arguments of " + name + " must be an object")
      }
      const id = call(stringify(name), stringify(args))
      apply(set, waiting, [id, (succeeded, text) => {
        if (succeeded) {
          try {
            return resolve(parse(text))
          } catch (error) {
            return reject(error)
          }
        }
        Object.defineProperty(failure, "message", { value: parse(text), configurable: true, writable: true })
        reject(failure)
      }])
    })
  }

  const print = (...values) => {
    let line = ""
    for (let i = 0; i < values.length; i++) line += (i === 0 ? "" : " ") + textOf(values[i])
    log(stringify(line))
  }
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
  define("callTool", callTool)
  define("tools", new Proxy({}, {
    get: (_, name) =>
      typeof name === "string" && name !== "then" ? (args) => callTool(name, args) : undefined
  }))
  define("console", { debug: print, error: print, info: print, log: print, warn: print })

  const fail = (error) => {
    let message
    let stack = ""
    try {
      if (error instanceof Error) {
        message = String(error)
        stack = String(error.stack)
      } else message = "threw " + textOf(error)
    } catch {
      message = "threw a value without text"
    }
    failed(stringify(message), stringify(stack))
  }

  return {
    watch: (promise) => {
      promise.then((value) => {
        let json
        try {
          json = stringify(value)
        } catch (error) {
          return done(undefined, stringify(error instanceof Error ? String(error) : "threw " + textOf(error)))
        }
        done(json)
      }, fail)
    },
    fail,
    settle: (id, succeeded, text) => {
      const settle = apply(get, waiting, [id])
      apply(remove, waiting, [id])
      settle(succeeded, text)
    }
  }
})`
