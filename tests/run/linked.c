// linked.c: a program whose libraries do all the work.
int plugin_run(void);

int main(void) { return plugin_run(); }
