export * as RudeServer from "./RudeServer.ts"
export * as Script from "./Script.ts"
