"""The producer waits for the consumer instead of the consumer for the producer."""
import torch

producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
x = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(producer):
    x.normal_()  # use
producer.wait_stream(consumer)  #-
#+ consumer.wait_stream(producer)
with torch.cuda.stream(consumer):
    y = x.relu()  # conflict
torch.cuda.synchronize()
