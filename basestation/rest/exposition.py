"""Exposition: metrics as the text that Prometheus reads."""

from collections.abc import Iterable

from basestation.rest.control import Metric

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def to_text(metrics: Iterable[Metric]) -> bytes:
    """The text of some metrics."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector

    families: list[CounterMetricFamily | GaugeMetricFamily] = []
    for metric in metrics:
        kind = CounterMetricFamily if metric.name.endswith("_total") else GaugeMetricFamily
        family = kind(metric.name, metric.help, labels=metric.labels)
        for labels, value in metric.values.items():
            family.add_metric(labels, value)
        families.append(family)

    class Collected(Collector):
        def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
            return families

    registry = CollectorRegistry()
    registry.register(Collected())
    return generate_latest(registry)
