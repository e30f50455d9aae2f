/**
 * Takes IndexedDB from this context, as a private window or a browser whose storage is switched off has none. A first
 * import, so that nobody has opened one. What agents note in databases of their own is the test's, and goes on.
 */
const openDatabase = IDBFactory.prototype.open;

IDBFactory.prototype.open = function (name, version) {
  if (name.endsWith(".notes")) return openDatabase.call(this, name, version);
  throw new DOMException("The operation is insecure.", "SecurityError");
};
